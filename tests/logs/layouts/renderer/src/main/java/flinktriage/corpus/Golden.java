package flinktriage.corpus;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Writes the expected cause chain of each failure as JSON, read from the throwables. */
public final class Golden {
    public static void main(String[] args) throws Exception {
        Map<String, Object> golden = new LinkedHashMap<>();
        for (Map.Entry<String, Throwable> failure : Failures.all().entrySet()) {
            golden.put(failure.getKey(), chain(failure.getValue()));
        }
        new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValue(new File(args[0]), golden);
    }

    private static List<Map<String, Object>> chain(Throwable thrown) {
        List<Map<String, Object>> chain = new ArrayList<>();
        Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        for (Throwable one = thrown; one != null && seen.add(one); one = one.getCause()) {
            Map<String, Object> said = new LinkedHashMap<>();
            boolean isSerialized = one instanceof org.apache.flink.util.SerializedThrowable;
            String type = isSerialized
                ? ((org.apache.flink.util.SerializedThrowable) one).getOriginalErrorClassName()
                : one.getClass().getName();
            String message = one.getMessage();
            // The message of a SerializedThrowable begins with the class of the original throwable.
            if (isSerialized && message != null && message.startsWith(type + ": ")) {
                message = message.substring(type.length() + 2);
            }
            said.put("type", type);
            said.put("message", message == null ? "" : message);
            said.put("frames", one.getStackTrace().length);
            List<Object> suppressed = new ArrayList<>();
            for (Throwable other : one.getSuppressed()) {
                suppressed.add(chain(other));
            }
            said.put("suppressed", suppressed);
            chain.add(said);
        }
        return chain;
    }
}

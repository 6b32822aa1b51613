package flinktriage.proof;

import com.esotericsoftware.kryo.KryoException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InvalidClassException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.flink.runtime.checkpoint.CheckpointException;
import org.apache.flink.runtime.checkpoint.CheckpointFailureReason;
import org.apache.flink.runtime.io.network.partition.PartitionNotFoundException;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.util.FlinkRuntimeException;
import org.apache.flink.util.SerializedThrowable;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.rocksdb.RocksDBException;

/** Exceptions with the messages of Flink and its libraries, mostly of the original classes. */
final class Failures {

    static final Map<String, Callable<Exception>> BY_NAME = new LinkedHashMap<>();

    static {
        BY_NAME.put(
                "rocksdb-bad-table-magic",
                () ->
                        new FlinkRuntimeException(
                                "Error while retrieving data from RocksDB.",
                                new RocksDBException(
                                        "Bad table magic number: expected 9863518390377041911,"
                                                + " found 0 in /data/job_1_op_A_uuid_2/db/000012.sst")));
        BY_NAME.put(
                "rocksdb-relocated",
                () ->
                        new RuntimeException(
                                new com.shop.shaded.org.rocksdb.RocksDBException(
                                        "Bad table magic number: expected 9863518390377041911,"
                                                + " found 0 in /data/job_1_op_A_uuid_2/db/000012.sst")));
        BY_NAME.put(
                "rocksdb-suppressed",
                () -> {
                    Exception failure = new IOException("Stream closed");
                    failure.addSuppressed(
                            new RocksDBException(
                                    "block checksum mismatch: stored = 1170, computed = 3331, type = 4"
                                            + "  in /data/job_1_op_A_uuid_2/db/000009.sst offset 0"
                                            + " size 3841"));
                    return failure;
                });
        BY_NAME.put(
                "disk-full",
                () -> new RuntimeException("spill", new IOException("No space left on device")));
        BY_NAME.put(
                "network-buffers",
                () ->
                        new IOException(
                                "Insufficient number of network buffers: required 65, but only 8"
                                        + " available. The total number of network buffers is"
                                        + " currently set to 2048 of 32768 bytes each. You can"
                                        + " increase this number by setting the configuration keys"
                                        + " 'taskmanager.memory.network.fraction',"
                                        + " 'taskmanager.memory.network.min', and"
                                        + " 'taskmanager.memory.network.max'."));
        BY_NAME.put(
                "checkpoint-expired",
                () -> new CheckpointException(CheckpointFailureReason.CHECKPOINT_EXPIRED));
        BY_NAME.put(
                "kafka-metadata",
                () ->
                        new IOException(
                                new TimeoutException(
                                        "Topic orders not present in metadata after 60000 ms.")));
        BY_NAME.put(
                "kafka-fenced",
                () ->
                        new ProducerFencedException(
                                "There is a newer producer with the same transactionalId which"
                                        + " fences the current one."));
        BY_NAME.put("kafka-not-authorized", () -> new TopicAuthorizationException("orders"));
        BY_NAME.put(
                "java-version",
                () ->
                        new IOException(
                                "Could not deserialize",
                                new InvalidClassException(
                                        "com.shop.Order; local class incompatible: stream classdesc"
                                                + " serialVersionUID = 1, local class"
                                                + " serialVersionUID = 2")));
        BY_NAME.put("kryo", () -> new KryoException("Unable to find class: com.shop.Order"));
        BY_NAME.put(
                "class-missing",
                () -> new NoClassDefFoundErrorHolder(new NoClassDefFoundError("com/shop/Order")));
        BY_NAME.put(
                "partition-not-found",
                () -> new RuntimeException(new PartitionNotFoundException(new ResultPartitionID())));
        BY_NAME.put(
                "checkpoint-file-missing",
                () ->
                        new FileNotFoundException(
                                "/checkpoints/5e1f/chk-12/9a7b-4c (No such file or directory)"));
        BY_NAME.put(
                "serialized-by-flink",
                () ->
                        new SerializedThrowable(
                                new RuntimeException(
                                        "outer", new IOException("No space left on device"))));
        BY_NAME.put(
                "thrown-by-a-hadoop-server",
                () ->
                        new IOException(
                                "mkdir",
                                new RemoteException(
                                        "org.apache.hadoop.security.AccessControlException",
                                        "Permission denied: user=flink, access=WRITE,"
                                                + " inode=\"/data\":hdfs:supergroup:drwxr-xr-x")));
        BY_NAME.put("plain-user-code", () -> new IllegalStateException("order 17 is odd"));
        BY_NAME.put(
                "nobody-knows-it",
                () -> {
                    Exception failure = new IllegalStateException("order 17 is odd");
                    // No frame is user code.
                    failure.setStackTrace(
                            new StackTraceElement[] {
                                new StackTraceElement("java.util.Objects", "check", "Objects.java", 1),
                                new StackTraceElement("org.apache.flink.X", "y", "X.java", 2)
                            });
                    return failure;
                });
        BY_NAME.put("user-frames-shared", Failures::sharingUserFrames);
    }

    /** Has the same string form as Hadoop's org.apache.hadoop.ipc.RemoteException. */
    private static final class RemoteException extends IOException {
        private final String className;

        RemoteException(String className, String message) {
            super(message);
            this.className = className;
        }

        @Override
        public String toString() {
            return getClass().getName() + "(" + className + "): " + getMessage();
        }
    }

    /** The user frame of the cause is not printed, because the enclosing throwable shares it. */
    private static Exception sharingUserFrames() {
        StackTraceElement map = new StackTraceElement("com.shop.Job", "map", "Job.java", 7);
        Exception cause = new IllegalStateException("odd");
        cause.setStackTrace(
                new StackTraceElement[] {
                    new StackTraceElement("java.util.Objects", "check", "Objects.java", 1), map
                });
        Exception failure = new Exception("order 17", cause);
        failure.setStackTrace(
                new StackTraceElement[] {
                    new StackTraceElement("org.apache.flink.X", "y", "X.java", 2), map
                });
        return failure;
    }

    private Failures() {}

    /** An exception that is caused by an error. */
    private static final class NoClassDefFoundErrorHolder extends Exception {
        NoClassDefFoundErrorHolder(NoClassDefFoundError cause) {
            super(cause);
        }
    }
}

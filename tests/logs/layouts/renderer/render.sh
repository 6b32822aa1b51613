#!/bin/sh
# Renders every layout with the real libraries into ./rendered; needs Java 17, Maven and network.
# rendered/golden.json is tests/golden/layouts.json.
set -e
cd "$(dirname "$0")"
mkdir -p rendered
mvn -q -B compile dependency:build-classpath -Dmdep.outputFile=target/classpath
CP="target/classes:$(cat target/classpath)"
P=flinktriage.corpus
java -cp "$CP" $P.Golden rendered/golden.json
java -Dout=rendered -Dlog4j2.configurationFile=log4j2.xml -cp "$CP" $P.Log4j2
java -Dout=rendered -cp "$CP" $P.Logback logback.xml
java -cp "$CP" $P.Log4j1 rendered/log4j1-hadoop.log '%d{yy/MM/dd HH:mm:ss} %p %c{2}: %m%n' \
  rendered/log4j1-flink.log '%d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %-60c %x - %m%n'

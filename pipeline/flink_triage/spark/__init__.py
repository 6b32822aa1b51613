"""The Spark runner: runs the stages on Spark, and stores their results in Delta tables."""

"""Spark jobs: programs that take data out of topics, work on it, and put it into topics.

Each job is one module with its own `main`. It runs as `python -m spark_jobs.NAME` on a laptop,
and by `spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0
spark_jobs/NAME.py` on a cluster, where the driver needs the repository beside that file and the
`[spark]` extra. `--help` names its options.

A job is a client of a running broker and nothing else: it uses Spark's stock `kafka` source and
sink, imports nothing of the broker, and runs as well against Apache Kafka. No job ships Python
to the executors; all work on records is written as Spark SQL expressions.

Start reading at `flights` (what a record is), then `rules` (what is wrong with a record),
`route_flights` (the job), `pipeline` (all of it, end to end).
"""

"""Spark jobs: programs that take data out of topics, work on it, and put it into topics.

Each job is one module with its own `main`. It runs as `python -m spark_jobs NAME` on a laptop,
and by `spark-submit --packages … spark_jobs/jobs/NAME.py` on a cluster (docs/pipeline.md has the
coordinates), where the driver needs the repository around that file and the `[spark]` extra.
`python -m spark_jobs` lists them, `--help` names the options of one.

A job is a client of a running broker and nothing else: it uses Spark's stock `kafka` source and
sink, imports nothing of the broker, and runs as well against Apache Kafka. No job ships Python
to the executors; all work on records is written as Spark SQL expressions.

What a record is, and what jobs do with it, stands in a definition, a TOML file. Start reading at
`definitions.definition`, then `definitions.typed_records` (typed columns, and what is wrong with a
record), `jobs.route` (a job), `spark.streams` (how queries run), and `pipeline` (all of them on
real data, end to end).
"""

"""All jobs on a year of flights, end to end, counted: `python -m spark_jobs.pipeline`."""

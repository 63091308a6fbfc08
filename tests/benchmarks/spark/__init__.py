"""The parts of the pipeline benchmark: Spark jobs as a batch, and a stream under steady load."""

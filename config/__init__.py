"""The broker's configuration: typed keys, property files, precedence and validation.

What it is: one row per key (`config.keys`), from which the typed values (`config.broker`,
`config.topic`), parsing (`config.properties`, `config.loader`), the answers to DescribeConfigs and
AlterConfigs (`config.describe`) and `docs/configuration.md` all come. The sample property files a
user copies live here too.

What it is not: behaviour. It reads one file on request and otherwise only computes.

Who may import it: every package but `spark_jobs`. It imports no other package of the project.

Where to start: `config/key.py` (the definition of a row), then any module of `config/keys/`.
"""

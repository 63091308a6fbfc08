"""The rows: one line and one docstring per key, grouped by subject.

Each module holds one dataclass whose fields are keys; `config.broker.BrokerConfig` inherits all of
them. A field's name is the key's name with underscores for dots. Where Apache Kafka 3.9.1 and 4.3.1
disagree about a default or a range, 3.9.1 wins, because this broker is configured like a 3.9.1
broker.

Not here: topic keys, which are the fields of `config.topic.TopicConfig`.
"""

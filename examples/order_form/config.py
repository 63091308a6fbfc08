"""Django's settings, and where orders go."""

from __future__ import annotations

SECRET_KEY = "for tests only"
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "urls"
USE_TZ = True

KAFKA_BOOTSTRAP_SERVERS = "localhost:9092"
KAFKA_TOPIC = "orders"
KAFKA_PATIENCE_SECONDS = 5.0
"""How long a customer waits for an order to be stored."""

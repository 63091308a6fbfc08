"""Takes orders from a form: 201 once Kafka has the order, 503 if it has not in time."""

from __future__ import annotations

import json
from functools import cache

from confluent_kafka import KafkaException, Producer
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST


@require_POST
def place(request: HttpRequest) -> JsonResponse:
    """Place one order."""
    order = {"item": request.POST["item"], "count": int(request.POST["count"])}
    try:
        offset = store(json.dumps(order).encode())
    except KafkaException as error:
        return JsonResponse({"error": error.args[0].str()}, status=503)
    return JsonResponse({"number": offset}, status=201)


def store(value: bytes) -> int:
    """Have Kafka store an order; gives its offset. Raises KafkaException."""
    answers = []
    patience = settings.KAFKA_PATIENCE_SECONDS
    sending = producer(settings.KAFKA_BOOTSTRAP_SERVERS, patience)
    sending.produce(
        settings.KAFKA_TOPIC,
        value,
        on_delivery=lambda error, message: answers.append((error, message)),
    )
    while not answers:
        sending.poll(patience)
    error, message = answers[0]
    if error is not None:
        raise KafkaException(error)
    return message.offset()


@cache
def producer(bootstrap_servers: str, patience_seconds: float) -> Producer:
    """The producer of this process: connecting anew for each order would take too long."""
    return Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 0,
            "message.timeout.ms": int(patience_seconds * 1000),
        }
    )

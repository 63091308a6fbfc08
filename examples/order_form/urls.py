"""Where the form posts to."""

from __future__ import annotations

from django.urls import path
from views import place

urlpatterns = [path("orders", place)]

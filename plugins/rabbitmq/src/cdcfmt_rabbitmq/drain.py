"""Queues, drained by pika."""

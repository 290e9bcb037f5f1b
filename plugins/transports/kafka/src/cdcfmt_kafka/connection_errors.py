"""Reasons why brokers do not answer."""

from __future__ import annotations

from typing import Any


class ConnectionErrors:
    """The last connection errors, the reasons for a missing answer."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._last: Any = None
        self.refused = False
        """Whether a broker refused user or password."""

    def note(self, error: Any) -> None:
        """The client's ``error_cb``."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._AUTHENTICATION:
            self.refused = True
        elif error.code() == KafkaError._ALL_BROKERS_DOWN or self.refused:
            # Less specific than the previous errors.
            return
        self._last = error

    def forget(self) -> None:
        self._last, self.refused = None, False

    def text(self, error: Any) -> str:
        """The reason for a missing answer; ``error`` is used if no connection reported one."""
        what = self._last if self._last is not None else error
        # The client's text begins with the connection's own name for the broker.
        detail = "no error was reported" if what is None else what.str()
        if self.refused:
            return (
                f"Kafka at {self._servers} refuses the login ({detail}); check "
                "kafka.sasl.username, kafka.sasl.password, kafka.sasl.mechanism and "
                "kafka.security.protocol"
            )
        return (
            f"no Kafka broker answers at {self._servers} ({detail}); check "
            "kafka.bootstrap.servers, kafka.security.protocol and what the brokers advertise"
        )

    def of_leader(self, broker: Any) -> str:
        """The reason why a broker from the metadata does not answer."""
        detail = "" if self._last is None else f" ({self._last.str()})"
        return (
            f"broker {broker.id} advertises {broker.host}:{broker.port}, which does not answer "
            f"from here{detail}; check that it runs, and set its advertised.listeners to an "
            "address that driver and executors can reach"
        )


def no_answer() -> frozenset[int]:
    """Error codes after which a retry may succeed."""
    from confluent_kafka import KafkaError

    return frozenset(
        {
            KafkaError._TIMED_OUT,
            KafkaError._TIMED_OUT_QUEUE,
            KafkaError._TRANSPORT,
            KafkaError._ALL_BROKERS_DOWN,
            KafkaError._RESOLVE,
            KafkaError._AUTHENTICATION,
            KafkaError._SSL,
        }
    )

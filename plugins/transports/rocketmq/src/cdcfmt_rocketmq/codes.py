"""Numbers of the remoting protocol: ``RequestCode`` and ``ResponseCode`` of RocketMQ."""

from __future__ import annotations

from typing import Final

PULL_MESSAGE: Final = 11
SEARCH_OFFSET: Final = 29
MAX_OFFSET: Final = 30
MIN_OFFSET: Final = 31
HEART_BEAT: Final = 34
ROUTE_OF_TOPIC: Final = 105
CLUSTER_INFO: Final = 106
ALL_TOPICS: Final = 206
SEND_BATCH: Final = 320

SUCCESS: Final = 0
SYSTEM_ERROR: Final = 1
SYSTEM_BUSY: Final = 2
REQUEST_UNKNOWN: Final = 3
FLUSH_DISK_TIMEOUT: Final = 10
SLAVE_NOT_AVAILABLE: Final = 11
FLUSH_SLAVE_TIMEOUT: Final = 12
MESSAGE_ILLEGAL: Final = 13
SERVICE_NOT_AVAILABLE: Final = 14
NO_PERMISSION: Final = 16
TOPIC_NOT_EXIST: Final = 17
PULL_NOT_FOUND: Final = 19
PULL_RETRY: Final = 20
PULL_OFFSET_MOVED: Final = 21

PASSING: Final = frozenset(
    {
        SYSTEM_ERROR,
        SYSTEM_BUSY,
        FLUSH_DISK_TIMEOUT,
        SLAVE_NOT_AVAILABLE,
        FLUSH_SLAVE_TIMEOUT,
        SERVICE_NOT_AVAILABLE,
    }
)
"""Codes after which a retry may succeed."""

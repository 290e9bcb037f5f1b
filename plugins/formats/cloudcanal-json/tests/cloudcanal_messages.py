"""The examples of CloudCanal's "MQ message formats", CloudCanal Json."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, Any] = {
    "dbValType": dict.fromkeys(("col1", "col2", "col_pk"), "varchar(22)"),
    "jdbcType": dict.fromkeys(("col1", "col2", "col_pk"), 12),
}

DML: dict[str, Any] = {
    "action": "INSERT/DELETE/UPDATE",
    "before": [{"col1": "22", "col2": "22", "col_pk": "22"}],
    "bid": 0,
    "data": [{"col1": "11", "col2": "11", "col_pk": "11"}],
    "db": "db_test",
    **_TYPES,
    "isDdl": False,
    "entryType": "ROWDATA",
    "execTs": 1669789152000,
    "pks": [],
    "schema": "db_test",
    "sendTs": 1669789153377,
    "sql": "",
    "table": "table_test",
}

DDL_EXAMPLE: dict[str, Any] = {
    "action": "ALTER",
    "before": [],
    "bid": 0,
    "data": [],
    "db": "db_test",
    **_TYPES,
    "isDdl": True,
    "entryType": "ROWDATA",
    "execTs": 1669789188000,
    "pks": [],
    "schema": "db_test",
    "sendTs": 1669789189533,
    "sql": "alter table table_test add col2 varchar(22) null",
    "table": "table_test",
    "tableChanges": {
        "table": {
            "columns": [
                {
                    "jdbcType": 12,
                    "name": name,
                    "position": position,
                    "typeExpression": "varchar(22)",
                    "typeName": "varchar",
                }
                for position, name in enumerate(("col1", "col2", "col_pk"))
            ],
            "primaryKeyColumnNames": ["col_pk"],
        },
        "type": "ALTER",
    },
}

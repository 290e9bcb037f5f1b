"""Plans for the tables of a batch: their next states, decided before any write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import attrs

from cdcfmt_core.errors import OptionError
from cdcfmt_mysql.column_changes import (
    column_changes,
    emptied_tables,
    is_emptied,
    namespace,
    renamed_tables,
    vacated_names,
)
from cdcfmt_mysql.lexemes import NotUnderstood
from pyspark_cdcfmt.blocks.schema import FILE
from pyspark_cdcfmt.sync.columns import ColumnPlanner, Events
from pyspark_cdcfmt.sync.definitions import Definitions, around, gives_other_names
from pyspark_cdcfmt.sync.names import (
    TableName,
    has_field,
    quote,
    refused_target,
    safe_name,
    table_text,
    target_of,
)
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.retiring import fill_added, follow_added, follow_columns
from pyspark_cdcfmt.sync.retyping import follow_types
from pyspark_cdcfmt.sync.seen_types import observe_columns
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.summary import TableStatement, TableVersion
from pyspark_cdcfmt.sync.table_merge import TableMerge

_OWN_SYNC = "exclude this table, and read it by another sync with another option into"
_SHOWN = 300
"""Maximum number of characters of a target's name in a reason."""

_MAX_TRUNCATES = 100
"""Maximum number kept per table, for late changes."""
_NO_ORDER = (
    "{} and rows of the table are on different partitions, without a commit_ts: which rows are "
    "before it is unknown"
)
_SEVERAL_FILES = (
    "rows without a commit_ts are in {}: the order of these files is unknown; read the topic, "
    "or files of whole messages with topic, partition and offset"
)
_SEVERAL_TOPICS = (
    "rows without a commit_ts are in the topics {}, whose offsets have no common order: read a new "
    "topic by a new sync with other targets; resume accepts topics that have no keys in common"
)
_MAYBE_TRUNCATED = (
    "rows on {} arrived after a TRUNCATE on {}, without a commit_ts: it may have removed them; "
    "resume accepts them as rows from after it"
)


_NEW_EPOCH = (
    "offsets of the topic began anew (it was deleted and created again, or lost messages): all "
    "changes from now on are later than those before; rows that the lost messages delete stay"
)
_OLD_TARGET = (
    "the target has rows of an earlier query, and no commit_ts orders the changes: all changes of "
    "this query are later; rows that were deleted at the source in between stay"
)
_IN_SQL = (
    "the name of the table or of a column, or a value in a statement, has ${, which this session "
    "replaces in SQL, and refuses to leave as it is (spark.sql.variable.substitute): read the "
    "table by a sync on another compute"
)
_NO_DATABASE = "its messages name no database: leave the table out by exclude"
_FOREIGN_KEY = re.compile(r"\bON\s+(?:DELETE|UPDATE)\s+(?:CASCADE|SET\s+NULL)\b", re.IGNORECASE)
_NO_ROW_EVENTS = (
    "{}: InnoDB does not write the rows that it changes into the binlog, so the target keeps their "
    "old values"
)
_SNAPSHOT_WITHOUT_ORDER = (
    "rows have no commit_ts: whether the snapshot as of snapshot_commit_ts has them is unknown; "
    "start a new sync without that option"
)


@attrs.define
class Planner:
    """Makes the plan of each table, statement by statement."""

    options: SyncOptions
    columns: ColumnPlanner
    base_of: Callable[[str], int] = lambda target: 0
    """The first epoch of changes for an existing target."""
    has_variables: bool = False
    """Whether Spark replaces ``${…}`` in SQL."""
    _targets: dict[str, TableName] = attrs.field(factory=dict)
    _definitions: Definitions = attrs.field(factory=Definitions)

    def know(self, states: Iterable[TableState]) -> None:
        """Register the targets and the definitions of known tables.

        :raises OptionError: if the option ``into`` names another target for one of them.
        """
        states = [*states]
        known = ((state.name, state.definitions) for state in states)
        self._definitions = Definitions(known, self.options.definitions)
        for state in states:
            if state.columns is not None:
                wanted = target_of(self.options.into, state.name)
                if self.options.wants(state.name) and wanted.lower() != state.target.lower():
                    raise OptionError(
                        f"option into: the target of {state.text} is {state.target} in this "
                        f"checkpoint, not {wanted}: set into as before, or start a new sync with "
                        "another checkpoint"
                    )
                self._targets[state.target.lower()] = state.name

    def define(self, statements: Iterable[TableStatement]) -> None:
        """Apply the statements of a batch, of all tables, to the definitions."""
        self._definitions.follow(sorted(statements, key=lambda each: each.sequence))

    def plan(
        self,
        state: TableState | None,
        name: TableName,
        versions: Sequence[TableVersion],
        statements: Sequence[TableStatement],
        events: Events,
    ) -> TableMerge:
        """Plan one table; ``state`` is None for a new one."""
        is_first = state is None
        if state is None:
            state = TableState(name, target_of(self.options.into, name))
        elif state.columns is None:
            state = attrs.evolve(state, target=target_of(self.options.into, name))
        state = attrs.evolve(state, definitions=self._definitions.of(name))
        if state.columns is None and not state.halted and (versions or statements):
            base = self.base_of(state.target)
            state = attrs.evolve(state, base=base, epoch=base)
        if state.base:
            versions = [each.shifted(state.base) for each in versions]
            statements = [each.shifted(state.base) for each in statements]
        plan = TableMerge(state, versions)
        if state.halted:
            return plan
        if not name[2] or (not name[0] and has_field(self.options.into, "database")):
            plan.halt(_NO_DATABASE)
            return plan
        own = {"checkpoint": self.options.checkpoint, "control": self.options.control}
        if reason := refused_target(state.target, own):
            plan.halt(f"the target {state.target[:_SHOWN]}: {reason}; {_OWN_SYNC}")
            return plan
        owner = self._targets.setdefault(state.target.lower(), name)
        if owner != name:
            plan.halt(f"the target {state.target} is that of {table_text(owner)}: {_OWN_SYNC}")
            return plan
        if is_first and any(safe_name(part) != part for part in name if part):
            plan.note("map name", f"the target is {state.target}")
        self._follow(plan, statements, events)
        if self.has_variables and "${" in "".join(plan.sql_texts):
            plan.halt(_IN_SQL)
        if plan.state.halted:
            plan.refuse(plan.state.halted)
        return plan

    def _follow(
        self, plan: TableMerge, statements: Sequence[TableStatement], events: Events
    ) -> None:
        if plan.state.snapshot and any(not version.first.commit for version in plan.versions):
            plan.halt(_SNAPSHOT_WITHOUT_ORDER)
            return
        self._follow_epoch(plan, statements)
        self._follow_places(plan)
        if not plan.state.halted:
            self._follow_truncated(plan)
        if not plan.state.halted:
            self._follow_statements(plan, statements)
        if plan.versions and not plan.state.halted:
            before = plan.state.columns
            self.columns.follow(plan, events)
            if self.columns.needs_key and not plan.state.halted:
                observe_columns(plan, before)
            if self.columns.needs_key and not plan.state.halted:
                fill_added(plan, before)

    def _follow_epoch(self, plan: TableMerge, statements: Sequence[TableStatement]) -> None:
        """Begin an epoch with the first rows or statements of a topic that was made anew."""
        lasts = [version.last for version in plan.versions]
        last = max((at.epoch for at in (*lasts, *(each.at for each in statements))), default=0)
        if last > plan.state.epoch:
            plan.state = plan.state.in_epoch(last)
            plan.note("epoch", _NEW_EPOCH, "warning")
        elif plan.state.base and plan.known is None and not all(at.commit for at in lasts):
            plan.note("epoch", _OLD_TARGET, "warning")

    def _follow_places(self, plan: TableMerge) -> None:
        new = frozenset().union(*(version.places for version in plan.versions))
        files = {place for place in new | plan.state.places if place.startswith(FILE)}
        if self.columns.needs_key and len(files) > 1:
            plan.halt_unless_catching_up(_SEVERAL_FILES.format(" and ".join(sorted(files)[:2])))
        topics = attrs.evolve(plan.state, places=plan.state.places | new).topics
        if self.columns.needs_key and len(topics) > max(1, len(plan.state.topics)):
            plan.halt_unless_catching_up(_SEVERAL_TOPICS.format(", ".join(sorted(topics))))
        # Keep only the newest files: a second file in one batch halts the table anyway.
        known = plan.state.places - (files if new & files else set())
        plan.state = attrs.evolve(plan.state, places=known | new)

    def _follow_truncated(self, plan: TableMerge) -> None:
        """Halt if rows of a lagging partition may be from before a TRUNCATE."""
        log = plan.state.truncated_log
        unordered = [version for version in plan.versions if not version.is_after(log)]
        places = frozenset().union(*(version.places for version in unordered))
        for place in sorted(plan.state.truncated):
            if others := places - {place}:
                reason = _MAYBE_TRUNCATED.format(", ".join(sorted(others)), place)
                plan.halt_unless_catching_up(reason)
                if not plan.state.halted:
                    plan.state = attrs.evolve(plan.state, truncated=frozenset())
                return

    def _follow_statements(self, plan: TableMerge, statements: Sequence[TableStatement]) -> None:
        choices = {"TRUNCATE": self.options.on_truncate, "ERASE": self.options.on_drop}
        for statement in statements:
            choice = choices.get(statement.type)
            is_there = plan.state.columns is not None or any(
                version.may_precede(statement) for version in plan.versions
            )
            if choice == "halt" and (plan.state.catching_up or not is_there):
                # A resumed table continues as the source did; or rows from before may still arrive.
                choice = "apply"
            known = plan.state.truncates
            # The statements at the start of a snapshot removed nothing.
            if choice is None or statement.of_snapshot:
                self._follow_other(plan, statement, is_there)
            elif statement.sequence in known or (
                len(known) == _MAX_TRUNCATES and statement.sequence < known[0]
            ):
                continue
            elif choice == "apply":
                self._follow_truncate(plan, statement, is_there)
            elif choice == "ignore":
                plan.note("ignore", statement.query, "warning")
            else:
                plan.halt(f"{statement.query} at the source")
            if plan.state.halted:
                return

    def _follow_other(self, plan: TableMerge, statement: TableStatement, is_there: bool) -> None:
        """Follow a statement that keeps the table's rows, or halt."""
        if reason := _cannot_follow(statement, is_there):
            plan.halt_unless_catching_up(reason)
            return
        plan.note("statement", statement.query)
        before, after = around(plan.state.definitions, statement)
        start, _ = statement.span
        if start is not None and plan.state.is_typed and gives_other_names(before, after):
            plan.renumbered.append((start, statement.query))
        if statement.place is not None and (action := _FOREIGN_KEY.search(statement.query)):
            plan.note("foreign key", _NO_ROW_EVENTS.format(action[0]), "warning")
        if is_there:
            follow_types(
                plan,
                statement,
                self.options.schema_changes,
                self.options.store,
                self.columns.types_of,
            )
            if plan.state.halted:
                return
            follow_columns(plan, statement, self.options.schema_changes)
            if self.columns.needs_key:
                follow_added(plan, statement, self.options.schema_changes)

    def _follow_truncate(self, plan: TableMerge, statement: TableStatement, is_there: bool) -> None:
        place = statement.place
        if place is not None:
            if is_there and plan.state.places - {place}:
                plan.halt_unless_catching_up(_NO_ORDER.format(statement.query))
                return
            plan.state = plan.state.with_truncated(place, statement.log)
            if any(version.places != {place} for version in plan.versions):
                # Rows of other partitions are later by the binlog; offsets cannot show that.
                plan.note("truncate", statement.query)
                return
        plan.truncates.append(statement.sequence)
        truncates = sorted([*plan.state.truncates, statement.sequence])[-_MAX_TRUNCATES:]
        plan.state = attrs.evolve(plan.state, truncates=tuple(truncates))
        plan.note("truncate", statement.query)


def _cannot_follow(statement: TableStatement, is_there: bool) -> str | None:
    """The reason to halt if the statement adds or removes rows without change messages."""
    database, schema, table = statement.name
    place = namespace(database, schema)
    names = renamed_tables(statement.query, place)
    is_new = (place.lower(), table.lower()) in {(d.lower(), t.lower()) for d, t in names}
    if is_new or (statement.type == "RENAME" and not names):
        return f"{statement.query}: the rows before it are in the target of the old name"
    try:
        loses_rows = column_changes(statement.query).rows
    except NotUnderstood:
        loses_rows = False
    if loses_rows and is_there:
        return f"{statement.query}: adds or removes rows without change messages"
    return None


@attrs.frozen
class Spread:
    """A statement that empties a table other than the one its message names, or renames it.

    :ivar origin: the statement with the message's table name.
    :ivar own: the same with the emptied table's name.
    """

    origin: TableStatement
    own: TableStatement

    @property
    def query(self) -> str:
        """An equivalent statement for this table alone."""
        verb = "TRUNCATE" if self.own.type == "TRUNCATE" else "DROP"
        return f"{verb} TABLE {quote(self.own.name[2])}"


def spread_statements(
    statements: dict[TableName, list[TableStatement]],
    tables: Iterable[TableName],
    wants: Callable[[TableName], bool],
) -> tuple[list[TableStatement], list[Spread]]:
    """Assign statements to all tables that they affect, even if the message does not name them.

    Removes statements of unwanted tables.

    :param statements: statements by table; changed in place.
    :param tables: tables with rows; a name may differ from the statement's in case, unless both
        exist.
    :param wants: whether a table is wanted.
    :returns: wanted statements without a table, and the assigned copies.
    """
    known = {*tables}
    # The statements at the start of a snapshot removed nothing.
    moving = [each for those in statements.values() for each in those if not each.of_snapshot]
    taken = [each for name in [*statements] if not name[2] for each in statements.pop(name)]
    spread: list[Spread] = []
    for each in moving:
        database, schema, table = each.name
        place = namespace(database, schema)
        vacated = vacated_names(each.query, place)
        if vacated or each.type in ("ERASE", "TRUNCATE", "QUERY", "CREATE"):
            emptied = emptied_tables(each.query, place) | vacated
            others = known - {each.name}
            if vacated:
                # The message may name the old or the new table.
                others = known
            elif each.type == "CREATE":
                # CREATE OR REPLACE has the same type.
                others = known & {each.name} or known
            elif each.name in known:
                emptied.discard((place.lower(), table.lower()))
            type_ = "TRUNCATE" if each.type == "TRUNCATE" else "ERASE"
            for name in others if emptied else ():
                if is_emptied(emptied, (database, schema), name):
                    spread.append(Spread(each, attrs.evolve(each, name=name, type=type_)))
                    statements.setdefault(name, []).append(spread[-1].own)
        for qualifier, renamed in renamed_tables(each.query, place):
            new: TableName = (qualifier, None, renamed)
            if schema is not None:
                new = database, qualifier, renamed
            if new != each.name:
                statements.setdefault(new, []).append(attrs.evolve(each, name=new))
    for name in [name for name in statements if not wants(name)]:
        del statements[name]
    for those in statements.values():
        those.sort(key=lambda each: each.sequence)
    return [each for each in taken if wants(each.name)], spread

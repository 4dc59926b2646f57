"""Any interleaving of transactions leaves what a simple model says.

The model remembers every change in order, and who made it. The state is always the fold of the changes that nobody
took back.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.errors import Conflict
from outfitter.session import Session, Transaction
from tests.session.values import Count, Note

Values = tuple[object, ...]
CHANGES: list[Callable[[Values, object], Values]] = [
    lambda values, new: (*values, new),
    lambda values, new: (new, *values),
    lambda _, new: (new,),
    lambda values, _: values[1:],
    lambda values, _: values[::-1],
]
ACTIONS = ["begin", "change", "change", "change", "keep", "raise", "rollback", "start"]


@dataclass(eq=False)
class Block:
    """A transaction, as the model knows it."""

    parent: Block | None
    transaction: Transaction
    ended: str = ""

    @property
    def heir(self) -> Block | None:
        return self if self.ended != "kept" else self.parent.heir if self.parent else None

    @property
    def is_undone(self) -> bool:
        return self.ended == "undone" or (self.parent is not None and self.parent.is_undone)


@dataclass(eq=False)
class Actor:
    """A thread or task: its own context, and the blocks it stands in; ``inherited`` came with the context."""

    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    inherited: Block | None = None
    blocks: list[Block] = field(default_factory=list[Block])

    @property
    def inside(self) -> Block | None:
        own = self.blocks[-1] if self.blocks else self.inherited
        return own.heir if own is not None else None


@dataclass
class World:
    """A session and its model side by side."""

    session: Session = field(default_factory=Session)
    actors: list[Actor] = field(default_factory=lambda: [Actor(), Actor()])
    history: list[tuple[Block | None, type, Callable[[Values], Values]]] = field(
        default_factory=list[tuple[Block | None, type, Callable[[Values], Values]]]
    )

    def expected(self, kind: type) -> Values:
        values: Values = ()
        for owner, changed, change in self.history:
            if changed is kind and (owner is None or not owner.is_undone):
                values = change(values)
        return values

    def step(self, actor: Actor, action: str, which: int, number: int) -> None:
        if action == "start":
            self.actors.append(Actor(actor.context.run(contextvars.copy_context), actor.inside))
        elif action == "begin":
            self.begin(actor)
        elif action == "change":
            self.change(actor, (Count, Note)[which % 2], CHANGES[which % len(CHANGES)], number)
        elif actor.blocks:
            self.end(actor, action)

    def begin(self, actor: Actor) -> None:
        transaction = self.session.transaction()
        if actor.inside is not None and actor.inside.is_undone:
            with pytest.raises(Conflict):
                actor.context.run(transaction.__enter__)
            return
        actor.context.run(transaction.__enter__)
        actor.blocks.append(Block(actor.inside, transaction))

    def change(self, actor: Actor, kind: type[object], how: Callable[[Values, object], Values], number: int) -> None:
        def change(values: Values) -> Values:
            return how(values, number)

        slice_ = self.session[kind]
        if actor.inside is not None and actor.inside.is_undone:
            with pytest.raises(Conflict):
                actor.context.run(slice_.update, change)
            return
        actor.context.run(slice_.update, change)
        self.history.append((actor.inside, kind, change))

    def end(self, actor: Actor, action: str) -> None:
        block = actor.blocks[-1]
        if action == "rollback":
            block.transaction.rollback()
        else:
            actor.context.run(block.transaction.__exit__, Exception if action == "raise" else None)
            actor.blocks.pop()
        block.ended = block.ended or ("kept" if action == "keep" else "undone")


@pytest.mark.promise("SESSION-TRANSACTION")
@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(ACTIONS), st.integers(0, 9), st.integers(0, 99)), max_size=40)
)
def test_any_interleaving_leaves_what_the_model_says(steps: list[tuple[int, str, int, int]]) -> None:
    world = World()
    for who, action, which, number in steps:
        world.step(world.actors[who % len(world.actors)], action, which, number)
        for kind in (Count, Note):
            assert world.session[kind].all() == world.expected(kind)

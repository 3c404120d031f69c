"""The registry of workers: names, leases, declarations and results (S1-R23, S1-R29)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import types as mcp

from sluicegate.core.bounded_schema_structure import SchemaStructure, read_structure
from sluicegate.errors import ConfigurationError, HeldByAnotherOwner, Malformed, ToolError
from sluicegate.tools.mcp_result_conversion import result_from_mcp, result_to_mcp
from sluicegate.tools.outbound_hosts import WorkerHosts
from sluicegate.tools.remote_tools import GatedRemoteTool, RemoteToolSettings, make_remote_tools
from sluicegate.tools.worker_call_metadata import WorkerCall, call_from_meta
from sluicegate.tools.worker_calls_awaiting_input import HeldCalls
from sluicegate.tools.worker_client import ListedTools, WorkerClient
from sluicegate.tools.worker_names import MAX_TOOL_NAME, full_tool_name
from sluicegate.tools.worker_registry import WorkerRegistry

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
TOKEN = "a-token-of-some-length"
CLIENT = WorkerClient("shop", "http://shop/mcp", lambda: None)


def tool(name: str = "pay", **more: Any) -> mcp.Tool:
    return mcp.Tool(**{"name": name, "description": "Pay.", "inputSchema": SCHEMA, **more})


@dataclass
class Network:
    """The tools that are listed at each URL, and the time."""

    listed: dict[str, list[mcp.Tool]] = field(default_factory=dict)
    now: float = 100.0

    def registry(self, *reserved_names: str) -> WorkerRegistry:
        """A registry whose workers are reached over this network."""
        return WorkerRegistry(
            RemoteToolSettings(),
            lease=30,
            reserved_names=reserved_names,
            clock=lambda: self.now,
            hosts=WorkerHosts(["one", "two"]),
            connect=lambda name, url, token, _: ListedClient(name, url, token, network=self),
        )


@dataclass(slots=True, kw_only=True)
class ListedClient(WorkerClient):
    """A client that lists tools from a `Network`."""

    network: Network

    async def tools(self, seconds: float) -> ListedTools:
        if self.url not in self.network.listed:
            raise ToolError(f"The worker {self.name} cannot be reached; nothing ran.")
        return ListedTools(self.network.listed[self.url])


@pytest.fixture
def network() -> Network:
    return Network({"http://one/mcp": [tool()], "http://two/mcp": [tool()]})


@pytest.fixture
def registry(network: Network) -> WorkerRegistry:
    return network.registry("own")


async def test_a_lease_is_renewed_or_runs_out(network: Network, registry: WorkerRegistry) -> None:
    for _ in range(2):
        assert await registry.register("shop", "http://one/mcp", TOKEN) == ["shop_pay"]
        network.now += 29
        assert [each.name for each in registry.tools()] == ["shop_pay"]
    network.now += 1
    assert registry.tools() == []
    assert registry.find("shop_pay") is None
    assert not await registry.remove("shop")


async def test_the_tools_of_a_removed_worker_are_removed(registry: WorkerRegistry) -> None:
    await registry.register("shop", "http://one/mcp", TOKEN)
    assert await registry.remove("shop")
    assert registry.tools() == []


async def test_a_second_worker_of_a_name_is_refused_while_the_first_answers(
    network: Network, registry: WorkerRegistry
) -> None:
    await registry.register("shop", "http://one/mcp", TOKEN)
    with pytest.raises(HeldByAnotherOwner, match="at another address and answers"):
        await registry.register("shop", "http://two/mcp", TOKEN)
    del network.listed["http://one/mcp"]
    assert await registry.register("shop", "http://two/mcp", TOKEN) == ["shop_pay"]


async def test_a_configured_name_cannot_be_registered(
    registry: WorkerRegistry,
) -> None:
    registry.add("shop", "http://two/mcp", lambda: None)
    with pytest.raises(HeldByAnotherOwner, match="configuration has a worker named shop"):
        await registry.register("shop", "http://one/mcp", TOKEN)
    assert not await registry.remove("shop")


@pytest.mark.parametrize(
    ("listed", "sentence"),
    [
        ([tool(), tool()], "two tools would have the name shop_pay"),
        ([tool("a.b"), tool("a/b")], "two tools would have the name shop_a_b"),
        ([tool("a b")], "its name is not letters, digits, _, -, . and /"),
        ([tool("x" * 63)], "longer than 64 characters"),
        ([tool("free", execution={"taskSupport": "required"})], "it runs only as a task"),
        ([tool(description="x" * 8193)], "has more than 8,192 characters"),
        ([tool(_meta={f"k{n}": 1 for n in range(33)})], "more than 32 entries"),
        ([tool(_meta={"k": "v" * 4096})], "4,096 bytes"),
    ],
)
async def test_a_worker_registers_all_of_its_tools_or_none_and_a_configured_one_has_the_others(
    network: Network,
    registry: WorkerRegistry,
    caplog: pytest.LogCaptureFixture,
    listed: list[mcp.Tool],
    sentence: str,
) -> None:
    network.listed["http://one/mcp"] = [tool("good"), *listed]
    with pytest.raises(Malformed, match=sentence):
        await registry.register("shop", "http://one/mcp", TOKEN)
    assert registry.tools() == []
    registry.add("shop", "http://one/mcp", lambda: None)
    await registry.refresh()
    assert [each.name for each in registry.tools()] == ["shop_good"]
    assert any("is left out: " in each and sentence in each for each in caplog.messages)


@pytest.mark.parametrize("listed", [["a.b", "a_b"], ["a_b", "a.b"]])
async def test_a_renamed_tool_gives_way_to_the_one_that_has_the_name(
    network: Network, registry: WorkerRegistry, listed: list[str]
) -> None:
    network.listed["http://one/mcp"] = [tool(name, description=name) for name in listed]
    registry.add("shop", "http://one/mcp", lambda: None)
    await registry.refresh()
    assert {each.name: each.description for each in registry.tools()} == {"shop_a_b": "a_b"}


def deep(levels: int) -> dict[str, Any]:
    return {"not": deep(levels - 1)} if levels else {}


@pytest.mark.parametrize(
    ("schemas", "why"),
    [
        ({"inputSchema": {"type": "array"}}, "it describes no object"),
        ({"inputSchema": {**SCHEMA, "required": 3}}, "the value of required is not valid"),
        ({"inputSchema": {**SCHEMA, "x": "y" * 70_000}}, "it has more than 65,536 bytes"),
        ({"inputSchema": {**SCHEMA, "x": deep(70)}}, "it is nested more than 64 levels deep"),
        ({"inputSchema": {**SCHEMA, "not": {"pattern": "(?=a)"}}}, "'(?=a)' is not valid, or has"),
        ({"outputSchema": {"x": "y" * 70_000}}, "it has more than 65,536 bytes"),
        ({"outputSchema": {"x": deep(150)}}, "it is nested more than 64 levels deep"),
    ],
)
async def test_a_tool_with_an_unusable_schema_is_left_out_and_the_others_stay(
    network: Network,
    registry: WorkerRegistry,
    caplog: pytest.LogCaptureFixture,
    schemas: dict[str, Any],
    why: str,
) -> None:
    network.listed["http://one/mcp"] = [tool("good"), tool("bad", **schemas), tool("better")]
    registry.add("shop", "http://one/mcp", lambda: None)
    for _ in range(2):
        await registry.refresh()
        assert sorted(each.name for each in registry.tools()) == ["shop_better", "shop_good"]
    [line] = [each.getMessage() for each in caplog.records]
    assert line.startswith("the tool shop_bad is left out: its schema cannot be used: ")
    assert why in line


async def test_unchanged_definitions_are_compiled_once(
    network: Network, registry: WorkerRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []

    def counted(schema: dict[str, Any]) -> SchemaStructure:
        read.append(schema)
        return read_structure(schema)

    monkeypatch.setattr("sluicegate.core.schema_validation.read_structure", counted)
    schema = {**SCHEMA, "title": "compiled by no other test"}
    network.listed["http://one/mcp"] = [tool("one", inputSchema=schema), tool("two")]
    registry.add("shop", "http://one/mcp", lambda: None)
    for _ in range(5):
        await registry.refresh()
        for each in registry.tools():
            assert each.argument_error({}) is None
    assert read.count(schema) == 1
    first, _ = network.listed["http://one/mcp"]
    network.listed["http://one/mcp"] = [first, tool("two", inputSchema={**schema, "title": "new"})]
    await registry.refresh()
    assert read.count(schema) == 1
    assert read[-1]["title"] == "new"


@pytest.mark.parametrize(
    "url", ["ftp://x/", "http://", "http://u:p@x/", "http://x:99999/", "javascript:1", "\x00", ""]
)
async def test_an_invalid_url_is_refused(registry: WorkerRegistry, url: str) -> None:
    with pytest.raises(Malformed, match="no http or https URL"):
        await registry.register("shop", url, TOKEN)


def test_a_worker_cannot_declare_its_tool_free_of_approval() -> None:
    safe = mcp.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
    meta = {"require_confirmation": False, "gated": False, "sluicegate": {"ungated": True}}
    for names, gated in ((frozenset[str](), True), (frozenset({"shop_pay"}), False)):
        terms = RemoteToolSettings(ungated=names)
        declared = tool(annotations=safe, title="Only looks", _meta=meta)
        listed = ListedTools([declared])
        [made] = make_remote_tools(CLIENT, listed, terms, frozenset(), HeldCalls(1)).tools.values()
        assert isinstance(made, GatedRemoteTool) is gated
        assert made.custom_metadata == {
            "title": "Only looks",
            "toolMetadata": {"worker": "shop", "description": "Pay."},
        }


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_names_are_joined_or_refused(worker: str, name: str) -> None:
    try:
        full = full_tool_name(worker, name)
    except ConfigurationError:
        return
    assert len(full) <= MAX_TOOL_NAME
    assert full.isascii()
    assert full.partition("_") == (worker, "_", name.replace(".", "_").replace("/", "_"))


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_invalid_metadata_of_a_call_is_ignored(entry: Any) -> None:
    assert call_from_meta({"sluicegate/call": entry}) is None


def test_a_call_survives_the_metadata() -> None:
    call = WorkerCall("c1", "ann", "app", "chat", "k" * 64, 2.5, "bob", is_repeated=True)
    assert call_from_meta(call.as_meta()) == call


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(), x, max_size=4),
        max_leaves=10,
    )
)
def test_any_result_is_converted_or_refused_in_one_sentence(value: Any) -> None:
    try:
        result = result_to_mcp(value)
    except ToolError:
        return
    copied = mcp.CallToolResult.model_validate_json(result.model_dump_json(by_alias=True))
    assert isinstance(result_from_mcp(copied), dict)

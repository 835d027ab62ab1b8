"""An unmodified client written with the Python package `mcp`; reads a plan, prints a report (see plan.ts)."""

import asyncio
import json
import sys

import mcp


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main() -> None:
    plan = json.loads(sys.argv[1])
    mode = "legacy" if plan["era"] == "legacy" else "2026-07-28"
    async with mcp.Client(plan["url"], mode=mode) as client:
        tools = [plain(tool) for tool in (await client.list_tools()).tools]
        results = [plain(await client.call_tool(call["name"], call["arguments"])) for call in plan["calls"]]
        info = getattr(client, "server_info", None)
        print(
            json.dumps(
                {
                    "protocolVersion": str(getattr(client, "protocol_version", None)),
                    "serverName": getattr(info, "name", None),
                    "tools": tools,
                    "results": results,
                }
            )
        )


asyncio.run(main())

"""mcp-use's agent. Telemetry is off because it would be sent over the network."""

import os

from driver import MODEL, PROMPT, model_url, run, server

os.environ["MCP_USE_ANONYMIZED_TELEMETRY"] = "false"


async def ask():
    from langchain_openai import ChatOpenAI
    from mcp_use import MCPAgent, MCPClient

    client = MCPClient.from_dict({"mcpServers": {"probe": server()}})
    llm = ChatOpenAI(model=MODEL, base_url=model_url("/v1"), api_key="none")
    agent = MCPAgent(llm=llm, client=client, max_steps=30)
    try:
        return await agent.run(PROMPT)
    finally:
        await client.close_all_sessions()


run(ask)

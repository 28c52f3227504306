"""LangChain's agent with MCP tools, as its own page shows it. Every call opens a session, and so a server, of its own."""

from datetime import timedelta

from driver import MODEL, PROMPT, limit, model_url, run, server


async def ask():
    from langchain.agents import create_agent
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_openai import ChatOpenAI

    settings = limit(read_timeout_seconds=lambda seconds: timedelta(seconds=seconds))
    client = MultiServerMCPClient({"probe": {"transport": "stdio", **server(), "session_kwargs": settings}})
    model = ChatOpenAI(model=MODEL, base_url=model_url("/v1"), api_key="none")
    agent = create_agent(model, await client.get_tools())
    answer = await agent.ainvoke({"messages": [{"role": "user", "content": PROMPT}]})
    return answer["messages"][-1].text


run(ask)

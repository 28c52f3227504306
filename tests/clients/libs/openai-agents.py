"""The OpenAI Agents SDK. Tracing is off because it would be sent over the network."""

from driver import MODEL, PROMPT, limit, model_url, run, server


async def ask():
    from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
    from agents.mcp import MCPServerStdio
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = OpenAIResponsesModel(MODEL, AsyncOpenAI(base_url=model_url("/v1"), api_key="none"))
    async with MCPServerStdio(params=server(), **limit(client_session_timeout_seconds=float)) as probe:
        agent = Agent(name="probe", model=model, mcp_servers=[probe])
        return (await Runner.run(agent, PROMPT)).final_output


run(ask)

"""Google's Agent Development Kit, with Gemini's API on the scripted model."""

import os

from driver import PROMPT, limit, model_url, run, server

os.environ["GOOGLE_API_KEY"] = "none"
os.environ["GOOGLE_GEMINI_BASE_URL"] = model_url()


async def ask():
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from google.genai import types
    from mcp import StdioServerParameters

    parameters = StdioServerParameters(**server())
    toolset = McpToolset(connection_params=StdioConnectionParams(server_params=parameters, **limit(timeout=float)))
    agent = LlmAgent(name="probe", model="gemini-flash-latest", tools=[toolset])
    runner = InMemoryRunner(agent)
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="probe")
    message = types.Content(role="user", parts=[types.Part(text=PROMPT)])
    text = ""
    async for event in runner.run_async(user_id="probe", session_id=session.id, new_message=message):
        text = said(event) or text
    await runner.close()
    return text


def said(event):
    parts = (event.content and event.content.parts) or []
    return "".join(part.text or "" for part in parts)


run(ask)

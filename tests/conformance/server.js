// A server that passes the whole conformance suite, on the official TypeScript SDK 2.x.
//
//   node server.js --http PORT   Streamable HTTP on 127.0.0.1, at /mcp; says on stderr where it listens
//   node server.js --stdio       the same over stdio
//
// With `--no-tasks` its tools are plain ones; with `--nothing` it has none, and nothing else.
//
// Both eras on both transports: the client's first message decides. What it offers is in
// `fixture.js`; here is only how a client reaches it.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import {
    localhostHostValidation,
    localhostOriginValidation,
    NodeStreamableHTTPServerTransport,
    toNodeHandler,
    toWebRequest
} from '@modelcontextprotocol/node';
import { createMcpHandler, isInitializeRequest, isLegacyRequest } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { build, changes } from './fixture.js';

/** How soon a client may come back after its stream was closed on purpose. */
const RETRY_MS = 200;

/** Remembers the events of one session, so that a client can ask for those it missed. */
class Events {
    #events = [];

    async storeEvent(streamId, message) {
        const eventId = randomUUID();
        this.#events.push({ eventId, streamId, message });
        return eventId;
    }

    async getStreamIdForEventId(eventId) {
        return this.#events.find(event => event.eventId === eventId)?.streamId;
    }

    async replayEventsAfter(lastEventId, { send }) {
        const last = this.#events.findIndex(event => event.eventId === lastEventId);
        const { streamId } = this.#events[last];
        for (const event of this.#events.slice(last + 1)) {
            if (event.streamId === streamId) await send(event.eventId, event.message);
        }
        return streamId;
    }
}

/** Serves legacy requests: one transport and one server for each session. */
function legacyHandler() {
    const sessions = new Map();
    const open = async () => {
        const transport = new NodeStreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            eventStore: new Events(),
            retryInterval: RETRY_MS,
            onsessioninitialized: id => sessions.set(id, transport),
            onsessionclosed: id => sessions.delete(id)
        });
        await build({ era: 'legacy' }).connect(transport);
        return transport;
    };
    return async (req, res, body) => {
        const session = req.headers['mcp-session-id'];
        if (session === undefined && isInitializeRequest(body)) {
            return (await open()).handleRequest(req, res, body);
        }
        const transport = sessions.get(session);
        if (transport) return transport.handleRequest(req, res, body);
        const [status, message] = session === undefined ? [400, 'no session'] : [404, 'Session not found'];
        res.writeHead(status, { 'content-type': 'application/json' });
        res.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message } }));
    };
}

function serveHttp(port) {
    const modern = createMcpHandler(build, { legacy: 'reject', onerror: () => {} });
    changes.on('tools', () => modern.notify.toolsChanged());
    changes.on('prompts', () => modern.notify.promptsChanged());
    const [serveModern, serveLegacy] = [toNodeHandler(modern), legacyHandler()];
    const [hostAllowed, originAllowed] = [localhostHostValidation(), localhostOriginValidation()];

    const server = createServer(async (req, res) => {
        if (!hostAllowed(req, res) || !originAllowed(req, res)) return;
        if (new URL(req.url, 'http://localhost').pathname !== '/mcp') return res.writeHead(404).end();
        if (req.method !== 'POST') return serveLegacy(req, res);
        const request = await toWebRequest(req);
        const body = await request
            .clone()
            .json()
            .catch(() => undefined);
        if (await isLegacyRequest(request)) return serveLegacy(req, res, body);
        return serveModern(req, res, body);
    });
    server.listen(port, '127.0.0.1', () => {
        console.error(`listening on http://127.0.0.1:${server.address().port}/mcp`);
    });
}

const [how, port] = process.argv.slice(2);
if (how === '--stdio') serveStdio(build);
else if (how === '--http' && port) serveHttp(Number(port));
else {
    console.error('usage: node server.js --http PORT | --stdio');
    process.exit(2);
}

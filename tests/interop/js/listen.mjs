// How a JavaScript fixture server is reached over Streamable HTTP: where it listens, and which of
// its legacy sessions a request belongs to. Both TypeScript SDK lines share it.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

/** The port that a server has to come back to when it is started again; any that is free, without. */
export const PORT = Number(process.env.FIXTURE_PORT ?? 0);

/** Listens on loopback and says on stderr where. Ends with the process. */
export function listen(handle) {
    const http = createServer((req, res) => {
        handle(req, res).catch(error => {
            console.error(error);
            if (!res.headersSent) res.writeHead(500);
            res.end();
        });
    });
    http.listen(PORT, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${http.address().port}/mcp`));
}

/**
 * Gives each legacy session a server of its own.
 *
 * `open(options)` makes a transport with these options and connects a fresh server to it.
 */
export function sessions(open) {
    const transports = new Map();
    return async (req, res, body) => {
        if (req.url === '/forget') {
            // As if it had been started anew: whoever comes with a session is a stranger.
            transports.clear();
            res.writeHead(204).end();
            return;
        }
        const id = req.headers['mcp-session-id'];
        if (id !== undefined && !transports.has(id)) {
            res.writeHead(404).end();
            return;
        }
        const transport =
            transports.get(id) ??
            (await open({
                sessionIdGenerator: randomUUID,
                eventStore: new Events(),
                retryInterval: 100,
                onsessioninitialized: id => transports.set(id, transport),
                onsessionclosed: id => transports.delete(id)
            }));
        await transport.handleRequest(req, res, body);
    };
}

/** What a session sent, so that a client whose stream broke can have the rest. */
class Events {
    #sent = [];

    storeEvent(streamId, message) {
        this.#sent.push({ streamId, message });
        return String(this.#sent.length);
    }

    getStreamIdForEventId(id) {
        return this.#sent[Number(id) - 1]?.streamId;
    }

    async replayEventsAfter(lastId, { send }) {
        const { streamId } = this.#sent[Number(lastId) - 1];
        for (const [index, event] of this.#sent.entries()) {
            // The first event of a stream has an id and nothing to say.
            const isNews = index >= Number(lastId) && event.streamId === streamId && event.message.jsonrpc;
            if (isNews) await send(String(index + 1), event.message);
        }
        return streamId;
    }
}

// Follows the messages of one world: which revision is spoken, and which request an answer is for.

import { MODERN } from './schemas.mjs';

const NOT_JSON = 'not JSON';
/** Ids that a number of this language would not tell apart. */
const LARGE_ID = /"id"\s*:\s*(\d{16,})/g;

const nameOf = kind => kind.split('/')[1];

const VERSION = 'io.modelcontextprotocol/protocolVersion';

export class Scenario {
    #schemas;
    /** What sessions speak, until one of them says otherwise. */
    #legacy = '2025-11-25';
    /** Requests, by who made them and by id; peers may be told on another connection. */
    #requests = new Map();
    /** What was last spoken with a peer. */
    #spoken = new Map();
    /** Names of definitions that something which came in does not fit, in whatever revision. */
    #faulty = new Set();
    /** Methods that came in, and whether something was no JSON. */
    #cameIn = new Set();

    constructor(schemas) {
        this.#schemas = schemas;
    }

    hasFaulty(kind) {
        return this.#faulty.has(nameOf(kind));
    }

    knows({ method }) {
        return this.#cameIn.has(method ?? NOT_JSON);
    }

    /** What a line says: `{ kind, value }` for each schema that it must fit, or what no schema knows. */
    take(way, peer, text) {
        const side = way.replace('>', '');
        const comesIn = way.endsWith('>');
        let message;
        try {
            message = JSON.parse(text.replace(LARGE_ID, '"id":"$1"'));
        } catch {
            if (comesIn) this.#cameIn.add(NOT_JSON);
            return [{ text }];
        }
        const all = [message].flat().flatMap(message => this.#entries(message, side, peer, comesIn));
        for (const { kind, value, method } of comesIn ? all : []) {
            if (method) this.#cameIn.add(method);
            if (kind && this.#schemas.fault(kind, value)) this.#faulty.add(nameOf(kind));
        }
        return all;
    }

    #entries(message, side, peer, comesIn) {
        if (message.method !== undefined) return this.#said(message, side, peer, comesIn);
        const request = this.#find(comesIn ? `outlast to ${side}` : side, peer, message.id);
        const revision = request?.revision ?? this.#spoken.get(`${side} ${peer}`) ?? this.#legacy;
        if (message.error) {
            const kind = this.#schemas.error(revision, message.error.code);
            // JSON-RPC wants null where an id could not be read; the schemas do not speak of that case.
            return [{ kind, value: message.id === null ? { ...message, id: 'unreadable' } : message }];
        }
        if (!request) return [{ text: JSON.stringify(message) }];
        if (request.method === 'initialize') this.#agree(message.result?.protocolVersion);
        const spoken = request.method === 'initialize' ? this.#legacy : revision;
        const kind = this.#schemas.result(spoken, request.method, message.result);
        return [{ kind, value: message.result, method: request.method }];
    }

    /** A request or a notification. */
    #said(message, side, peer, comesIn) {
        const { id, method, params } = message;
        const named = params?._meta?.[VERSION];
        if (method === 'initialize') this.#agree(params?.protocolVersion);
        const known = this.#spoken.get(`${side} ${peer}`);
        const revision = named ? MODERN : id !== undefined ? this.#legacy : (known ?? this.#legacy);
        this.#spoken.set(`${side} ${peer}`, revision);
        const from = comesIn ? side : `outlast to ${side}`;
        // SEP-975: a resumed request is answered as the one that it resumes, also under an id of its own.
        const resumed = method === 'requests/resume';
        const answers = resumed ? this.#find(from, peer, params?.requestId ?? id) : { method, revision };
        if (id !== undefined && answers) {
            this.#requests.set(`${from} ${peer} ${JSON.stringify(id)}`, answers);
            this.#requests.set(`${from} ${JSON.stringify(id)}`, answers);
        }
        return [{ kind: this.#schemas.of(revision, method), value: message, method }];
    }

    #find(from, peer, id) {
        const key = JSON.stringify(id);
        return this.#requests.get(`${from} ${peer} ${key}`) ?? this.#requests.get(`${from} ${key}`);
    }

    #agree(revision) {
        if (this.#schemas.has(revision) && revision < MODERN) this.#legacy = revision;
    }
}

// The fixture server on the official TypeScript SDK 2.x; `../README.md` says what each tool does.
//
// It speaks both eras: the first message of the client decides. A tool that needs the client's
// input returns `inputRequired(...)`; towards a legacy client the SDK turns that into a request.
// With `--http` it listens on a free port and says where.

import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import {
    McpServer, acceptedContent, completable, createMcpHandler, inputRequired, inputResponse, isLegacyRequest
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { listen, sessions } from '../js/listen.mjs';

const COUNTER = 'test://counter';
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
const say = text => ({ content: [{ type: 'text', text: String(text) }] });

let touched = 0;
let cancelled = 0;

/** Tells all who listen; over HTTP a modern server lives for one request only and cannot. */
let tellListeners = server => server.server.sendResourceUpdated({ uri: COUNTER });

function build({ era }) {
    const server = new McpServer(
        { name: 'fixture-ts2', version: '1.0.0' },
        { capabilities: { logging: {}, resources: { subscribe: true } } }
    );
    const tool = (name, input, body) => server.registerTool(name, { inputSchema: z.object(input) }, body);
    const watched = new Set();

    tool('echo', { text: z.string() }, ({ text }) => say(text));
    tool('slow', { ms: z.number() }, async ({ ms }) => {
        await sleep(ms);
        return say(`slept ${ms}`);
    });
    tool('progress', { steps: z.number(), ms: z.number() }, async ({ steps, ms }, { mcpReq }) => {
        const progressToken = mcpReq._meta?.progressToken;
        for (let step = 1; step <= steps; step++) {
            if (progressToken !== undefined) {
                await mcpReq.notify({
                    method: 'notifications/progress',
                    params: { progressToken, progress: step, total: steps, message: `step ${step}` }
                });
            }
            // Also after the last report: one that travels with the answer is lost in some SDKs.
            await sleep(ms);
        }
        return say(`done ${steps}`);
    });
    tool('ask_sampling', { prompt: z.string() }, ({ prompt }, { mcpReq }) => {
        const answer = inputResponse(mcpReq.inputResponses, 'sample');
        if (answer.kind === 'sampling') return say(answer.result.content.text);
        const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
        return inputRequired({ inputRequests: { sample: inputRequired.createMessage({ messages, maxTokens: 100 }) } });
    });
    tool('ask_elicit', {}, (_, { mcpReq }) => {
        const colour = acceptedContent(mcpReq.inputResponses, 'colour')?.colour;
        if (colour) return say(`accept ${colour} ${mcpReq.requestState()}`);
        const requestedSchema = { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] };
        return inputRequired({
            inputRequests: { colour: inputRequired.elicit({ message: 'Which colour?', requestedSchema }) },
            requestState: 'state-42'
        });
    });
    tool('wait_cancel', {}, (_, { mcpReq: { signal } }) =>
        new Promise(resolve => {
            const timer = setTimeout(() => resolve(say('never cancelled')), 30_000);
            const stop = () => {
                clearTimeout(timer);
                cancelled += 1;
                resolve(say('cancelled'));
            };
            if (signal.aborted) stop();
            else signal.addEventListener('abort', stop, { once: true });
        })
    );
    tool('was_cancelled', {}, () => say(cancelled));
    tool('hang_up', {}, async (_, { http }) => {
        http?.closeSSE?.();
        await sleep(300);
        return say('still here');
    });
    tool('touch', {}, async () => {
        touched += 1;
        if (era === 'modern') await tellListeners(server);
        else if (watched.has(COUNTER)) await server.server.sendResourceUpdated({ uri: COUNTER });
        return say(touched);
    });
    tool('log', { level: z.string(), text: z.string() }, async ({ level, text }, { mcpReq }) => {
        await mcpReq.log(level, text, 'fixture');
        return say('logged');
    });
    tool('meta', {}, (_, { mcpReq }) => {
        const { progressToken, ...rest } = { ...mcpReq.envelope, ...mcpReq._meta };
        return say(JSON.stringify(rest));
    });

    server.registerResource('counter', COUNTER, { mimeType: 'text/plain' }, () => ({
        contents: [{ uri: COUNTER, mimeType: 'text/plain', text: String(touched) }]
    }));
    server.server.setRequestHandler('resources/subscribe', ({ params }) => {
        watched.add(params.uri);
        return {};
    });
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
        watched.delete(params.uri);
        return {};
    });
    const names = value => ['Ada', 'Alan', 'Grace'].filter(name => name.startsWith(value));
    server.registerPrompt(
        'greet',
        { argsSchema: z.object({ name: completable(z.string(), names) }) },
        ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Hello, ${name}!` } }] })
    );
    return server;
}

async function openSession(options) {
    const transport = new NodeStreamableHTTPServerTransport(options);
    await build({ era: 'legacy' }).connect(transport);
    return transport;
}

function serveHttp() {
    const handler = createMcpHandler(build, { legacy: 'reject' });
    tellListeners = () => handler.notify.resourceUpdated(COUNTER);
    const [modern, legacy] = [toNodeHandler(handler), sessions(openSession)];
    listen(async (req, res) => {
        const request = await toWebRequest(req);
        const serve = (await isLegacyRequest(request)) ? legacy : modern;
        await serve(req, res, req.method === 'POST' ? await request.json() : undefined);
    });
}

if (process.argv[2] === '--http') serveHttp();
else serveStdio(build);

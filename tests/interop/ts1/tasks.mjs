// Tasks of 2025-11-25 with the client of the official TypeScript SDK 1.x.
//
//     node tasks.mjs [own] -- COMMAND...|URL
//
// The server behind outlast knows nothing of tasks; its tools are those of `../README.md`. With `own` it is
// `server-everything`, which has tasks of its own. Prints one JSON line for each check.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CallToolResultSchema,
    CreateTaskResultSchema,
    ElicitRequestSchema,
    TaskStatusNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';
import { ANSWERS, bounded, expect, same, sleep, text, until } from '../js/checks.mjs';

const CHECK_LIMIT_MS = 15_000;
const RELATED = 'io.modelcontextprotocol/related-task';

const ownTasks = process.argv[2] === 'own';
const target = process.argv.slice(process.argv.indexOf('--') + 1);
const overHttp = target[0].startsWith('http');

const client = new Client(
    { name: 'interop-ts1-tasks', version: '1.0.0' },
    { capabilities: { elicitation: {}, ...(ownTasks && { tasks: {} }) } }
);
const tasks = client.experimental.tasks;
const told = [];
client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => void told.push(params));
client.setRequestHandler(ElicitRequestSchema, ({ params }) => ANSWERS.elicitation(params.requestedSchema));

const transport = overHttp
    ? new StreamableHTTPClientTransport(new URL(target[0]))
    : new StdioClientTransport({ command: target[0], args: target.slice(1) });

/** Makes a task without waiting for it. */
async function begin(name, args, options = {}) {
    const request = { method: 'tools/call', params: { name, arguments: args } };
    const { task } = await client.request(request, CreateTaskResultSchema, { task: {}, ...options });
    return task;
}

/** The SDK's own way: a stream of states that ends with the result. */
async function follow(name, args, task = {}) {
    const states = [];
    for await (const message of tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, { task })) {
        if (message.type === 'result') return { states, result: message.result };
        if (message.type === 'error') throw message.error;
        states.push(message.task);
    }
    throw new Error('the stream ended without a result');
}

function withoutTask({ _meta, ...result }, taskId) {
    same(_meta[RELATED], { taskId });
    const { [RELATED]: _, ...meta } = _meta;
    return Object.keys(meta).length > 0 ? { ...result, _meta: meta } : result;
}

const code = async promise => {
    const error = await promise.then(() => expect(false, 'no error'), error => error);
    return error.code ?? error.message;
};

const cancelled = async () => Number(text(await client.callTool({ name: 'was_cancelled', arguments: {} })));

const checks = {
    offered: async () => {
        const { requests, cancel, list } = client.getServerCapabilities().tasks;
        same([requests, cancel], [{ tools: { call: {} } }, {}]);
        // Without authentication nobody can be told whose tasks are whose.
        same(list ?? 'absent', overHttp ? 'absent' : {});
        const { tools } = await client.listTools();
        same([...new Set(tools.map(tool => tool.execution?.taskSupport))], ['optional']);
        return `${tools.length} tools`;
    },
    stream: async () => {
        const plain = await client.callTool({ name: 'slow', arguments: { ms: 1200 } });
        const { states, result } = await follow('slow', { ms: 1200 });
        const [{ taskId, status, pollInterval }] = states;
        same(status, 'working');
        same(states.at(-1).status, 'completed');
        expect(pollInterval > 0, `poll every ${pollInterval} ms`);
        same(withoutTask(result, taskId), plain);
        return text(result);
    },
    short_ttl: async () => {
        const { states, result } = await follow('slow', { ms: 1500 }, { ttl: 1 });
        expect(states[0].ttl > 60_000, `ttl ${states[0].ttl}`);
        return text(result);
    },
    result: async () => {
        const { taskId } = await begin('slow', { ms: 700 });
        same((await tasks.getTask(taskId)).status, 'working');
        const result = await tasks.getTaskResult(taskId, CallToolResultSchema);
        same((await tasks.getTask(taskId)).status, 'completed');
        same(await tasks.getTaskResult(taskId, CallToolResultSchema), result);
        await until(() => told.some(task => task.taskId === taskId && task.status === 'completed'), 'a notification');
        return text(result);
    },
    progress: async () => {
        const seen = [];
        const onprogress = ({ progress }) => seen.push(progress);
        const { taskId } = await begin('progress', { steps: 5, ms: 50 }, { onprogress });
        const result = await tasks.getTaskResult(taskId, CallToolResultSchema);
        same(seen.slice(0, 4), [1, 2, 3, 4]);
        return text(result);
    },
    failed: async () => {
        const { taskId } = await begin('no_such_tool', {});
        const outcome = await tasks.getTaskResult(taskId, CallToolResultSchema).then(
            ({ isError }) => (isError ? 'isError' : 'a result'),
            error => `error ${error.code}`
        );
        same((await tasks.getTask(taskId)).status, 'failed');
        return outcome;
    },
    cancel: async () => {
        const before = await cancelled();
        const { taskId } = await begin('wait_cancel', {});
        await sleep(200);
        same((await tasks.cancelTask(taskId)).status, 'cancelled');
        same((await tasks.getTask(taskId)).status, 'cancelled');
        await until(async () => (await cancelled()) === before + 1, 'the server noticed the cancel');
        same(await code(tasks.cancelTask(taskId)), -32602);
        return `the server noticed, and its result is error ${await code(tasks.getTaskResult(taskId))}`;
    },
    elicitation: async () => {
        const { taskId } = await begin('ask_elicit', {});
        return text(await tasks.getTaskResult(taskId, CallToolResultSchema));
    },
    list: async () => {
        if (overHttp) return `error ${await code(client.request({ method: 'tasks/list' }, CallToolResultSchema))}`;
        const { taskId } = await begin('echo', { text: 'listed' });
        const { tasks: all } = await tasks.listTasks();
        same(all[0].taskId, taskId);
        expect(all.length > 5, `only ${all.length} tasks`);
        return 'the newest first';
    },
    unknown: async () => `error ${await code(tasks.getTask('0'.repeat(64)))}`
};

const RESEARCH = 'simulate-research-query';
const distinct = states => [...new Set(states.map(({ status }) => status))].join(' ');

/** The same whether outlast is there or not. */
const own = {
    offered: async () => {
        const { tools } = await client.listTools();
        const support = tools.map(({ name, execution }) => `${name} ${execution?.taskSupport}`);
        return `${JSON.stringify(client.getServerCapabilities().tasks)} ${support.join(', ')}`;
    },
    stream: async () => {
        const { states, result } = await follow(RESEARCH, { topic: 'bees', ambiguous: false });
        return `${distinct(states)}: ${text(withoutTask(result, states[0].taskId)).split('\n')[0]}`;
    },
    cancel: async () => {
        const { taskId } = await begin(RESEARCH, { topic: 'bees', ambiguous: false });
        same((await tasks.cancelTask(taskId)).status, 'cancelled');
        return (await tasks.getTask(taskId)).status;
    },
    list: async () => `${(await tasks.listTasks()).tasks.length} tasks`,
    unknown: async () => `error ${await code(tasks.getTask('none'))}`
};

let failed = false;
const report = (check, ok, detail) => {
    failed ||= !ok;
    process.stdout.write(`${JSON.stringify({ check, ok, detail })}\n`);
};
await bounded(client.connect(transport), CHECK_LIMIT_MS, 'connect');
for (const [check, body] of Object.entries(ownTasks ? own : checks)) {
    try {
        report(check, true, await bounded(body(), CHECK_LIMIT_MS, check));
    } catch (error) {
        report(check, false, error.message);
    }
}
await transport.terminateSession?.();
await client.close();
process.exit(failed ? 1 : 0);

// The tasks extension: tools whose answer is fetched later.
//
// The SDK has no such extension yet, so this stands in front of its own handler of `tools/call`.
// A client that did not declare the extension with its request is never handed a task.

import { randomUUID } from 'node:crypto';
import {
    inputRequired,
    MissingRequiredClientCapabilityError,
    ProtocolError,
    ProtocolErrorCode
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { say, sleep } from './tools.js';

export const EXTENSION = 'io.modelcontextprotocol/tasks';

const TTL_MS = 60_000;
const POLL_MS = 100;

const tasks = new Map();

class Task {
    taskId = randomUUID();
    status = 'working';
    createdAt = new Date().toISOString();
    lastUpdatedAt = this.createdAt;
    outcome = {};
    #questions = {};
    #answers = {};
    #answered;

    constructor(work) {
        tasks.set(this.taskId, this);
        setTimeout(() => tasks.delete(this.taskId), TTL_MS).unref();
        work(this).then(
            result => this.#become('completed', { result }),
            ({ code, message }) => this.#become('failed', { error: { code, message } })
        );
    }

    get summary() {
        const { taskId, status, createdAt, lastUpdatedAt } = this;
        return { taskId, status, createdAt, lastUpdatedAt, ttlMs: TTL_MS, pollIntervalMs: POLL_MS };
    }

    get details() {
        const waiting = this.status === 'input_required' ? { inputRequests: this.#questions } : {};
        return { ...this.summary, ...waiting, ...this.outcome };
    }

    /** Waits until the client has answered all questions. */
    ask(questions) {
        this.#questions = { ...questions };
        this.#become('input_required');
        return new Promise(resolve => (this.#answered = resolve));
    }

    answer(answers) {
        for (const key of Object.keys(answers).filter(key => key in this.#questions)) {
            this.#answers[key] = answers[key];
            delete this.#questions[key];
        }
        if (this.status !== 'input_required' || Object.keys(this.#questions).length > 0) return;
        this.#become('working');
        this.#answered(this.#answers);
    }

    cancel() {
        this.#become('cancelled');
    }

    #become(status, outcome = {}) {
        if (['completed', 'failed', 'cancelled'].includes(this.status)) return;
        this.status = status;
        this.outcome = outcome;
        this.lastUpdatedAt = new Date().toISOString();
    }
}

const question = (message, property, type) =>
    inputRequired.elicit({ message, requestedSchema: { type: 'object', properties: { [property]: { type } } } });

/** The work behind each tool; `required` ones cannot do without a task. */
const WORK = {
    slow_compute: {
        input: { seconds: z.number(), label: z.string().optional() },
        work: async ({ seconds, label }) => {
            await sleep(seconds * 1000);
            return say(`${label} took ${seconds} s`);
        }
    },
    failing_job: {
        required: true,
        work: async () => {
            await sleep(200);
            return { ...say('the job failed'), isError: true };
        }
    },
    protocol_error_job: {
        required: true,
        work: async () => {
            await sleep(200);
            throw new ProtocolError(ProtocolErrorCode.InternalError, 'the job broke');
        }
    },
    confirm_delete: {
        required: true,
        input: { filename: z.string() },
        work: async ({ filename }, task) => {
            await task.ask({ confirm: question(`Delete ${filename}?`, 'confirm', 'boolean') });
            return say(`deleted ${filename}`);
        }
    },
    multi_input: {
        required: true,
        work: async (_, task) => {
            await task.ask({
                first: question('First?', 'name', 'string'),
                second: question('Second?', 'name', 'string')
            });
            return say('both answered');
        }
    },
    test_tool_with_task: {
        required: true,
        asksFirst: true,
        work: async (_, task, answers) => say(`Hello, ${answers.user_name.content.name}!`)
    }
};

const declared = ({ mcpReq }) =>
    mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities']?.extensions?.[EXTENSION] !== undefined;

function requireExtension(ctx) {
    if (declared(ctx)) return;
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [EXTENSION]: {} } } });
}

function register(server, name, input, body) {
    server.registerTool(name, { description: name, inputSchema: z.object(input) }, body);
}

/** The same tools, answered when their work is done; those that ask cannot do without tasks. */
export function addPlainTools(server) {
    for (const [name, { input = {}, work }] of Object.entries(WORK)) register(server, name, input, work);
    register(server, 'greet', { name: z.string() }, ({ name }) => say(`Hello, ${name}!`));
    // The SDK would make a result of what a tool throws.
    const handlers = server.server._requestHandlers;
    const original = handlers.get('tools/call');
    const { protocol_error_job: broken } = WORK;
    handlers.set('tools/call', (request, ctx) =>
        WORK[request.params.name] === broken ? broken.work() : original(request, ctx)
    );
}

export function addTasks(server) {
    const tool = (name, input, body) => register(server, name, input, body);
    tool('greet', { name: z.string() }, ({ name }) => say(`Hello, ${name}!`));
    for (const [name, { input = {}, work, asksFirst }] of Object.entries(WORK)) {
        const ask = () =>
            inputRequired({ inputRequests: { user_name: question('What is your name?', 'name', 'string') } });
        tool(name, input, asksFirst ? ask : work);
    }
    standInFront(server.server);

    const method = (name, params, body) =>
        server.server.setRequestHandler(
            name,
            { params: z.looseObject({ taskId: z.string(), ...params }) },
            (given, ctx) => {
                requireExtension(ctx);
                const task = tasks.get(given.taskId);
                if (!task) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `no task ${given.taskId}`);
                return body(task, given, ctx) ?? {};
            }
        );
    method('tasks/get', {}, task => task.details);
    method('tasks/cancel', {}, task => task.cancel());
    method('tasks/update', {}, (task, _, { mcpReq }) => task.answer(mcpReq.inputResponses ?? {}));
}

/** Answers a call of one of our tools with a task; every other call is the SDK's. */
function standInFront(server) {
    const handlers = server._requestHandlers;
    const original = handlers.get('tools/call');
    handlers.set('tools/call', async (request, ctx) => {
        const { name, arguments: args } = request.params;
        const { work, required, asksFirst } = WORK[name] ?? {};
        if (!work) return original(request, ctx);
        if (required) requireExtension(ctx);
        const answers = ctx.mcpReq.inputResponses;
        if (!declared(ctx) || (asksFirst && !answers)) return original(request, ctx);
        const task = new Task(task => work(args ?? {}, task, answers));
        return { resultType: 'task', ...task.summary };
    });
}

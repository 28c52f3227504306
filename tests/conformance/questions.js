// Tools and a prompt that ask the client something before they answer.
//
// They return `inputRequired(...)`. Towards a legacy client the SDK turns that into a request and
// calls again with the answer; a modern client gets it as the result and calls again itself.

import { acceptedContent, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { say } from './tools.js';

const form = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const elicit = (message, requestedSchema) => inputRequired.elicit({ message, requestedSchema });
const sample = (text, maxTokens) =>
    inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens });

const TEXT = { type: 'string' };
const NAME = elicit('What is your name?', form({ name: TEXT }));

const DEFAULTS = form(
    {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true }
    },
    []
);

const OPTIONS = ['option1', 'option2', 'option3'];
const titled = word =>
    ['First', 'Second', 'Third'].map((nth, i) => ({ const: `value${i + 1}`, title: `${nth} ${word}` }));
const ENUMS = form(
    {
        untitledSingle: { type: 'string', enum: OPTIONS },
        titledSingle: { type: 'string', oneOf: titled('Option') },
        legacyEnum: {
            type: 'string',
            enum: ['opt1', 'opt2', 'opt3'],
            enumNames: ['Option One', 'Option Two', 'Option Three']
        },
        untitledMulti: { type: 'array', items: { type: 'string', enum: OPTIONS } },
        titledMulti: { type: 'array', items: { anyOf: titled('Choice') } }
    },
    []
);

export function addQuestions(server, { seal }) {
    const tool = (name, description, body, input = {}) =>
        server.registerTool(name, { description, inputSchema: z.object(input) }, body);

    tool(
        'test_sampling',
        'has the client sample',
        ({ prompt }, { mcpReq }) => {
            const answer = inputResponse(mcpReq.inputResponses, 'sample');
            if (answer.kind === 'sampling') return say(`LLM response: ${answer.result.content.text}`);
            return inputRequired({ inputRequests: { sample: sample(prompt, 100) } });
        },
        { prompt: z.string() }
    );

    const asks = (name, description, question, word, input) =>
        tool(
            name,
            description,
            (args, { mcpReq }) => {
                const answer = inputResponse(mcpReq.inputResponses, 'answer');
                if (answer.kind === 'elicit') {
                    return say(`${word}: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
                }
                return inputRequired({ inputRequests: { answer: question(args) } });
            },
            input
        );
    const account = form({
        username: { type: 'string', description: "User's response" },
        email: { type: 'string', description: "User's email address" }
    });
    asks('test_elicitation', 'asks the user', ({ message }) => elicit(message, account), 'User response', {
        message: z.string()
    });
    asks(
        'test_elicitation_sep1034_defaults',
        'asks with defaults',
        () => elicit('Please review', DEFAULTS),
        'Elicitation completed'
    );
    asks(
        'test_elicitation_sep1330_enums',
        'asks with choices',
        () => elicit('Please choose', ENUMS),
        'Elicitation completed'
    );
    asks('test_streaming_elicitation', 'asks on its stream', () => NAME, 'Answer');

    tool('test_missing_capability', 'needs a client that can sample', () =>
        inputRequired({ inputRequests: { sample: sample('Are you there?', 10) } })
    );

    tool('test_input_required_result_elicitation', 'asks for a name', (_, { mcpReq }) => {
        const name = acceptedContent(mcpReq.inputResponses, 'user_name')?.name;
        return name ? say(`Hello, ${name}!`) : inputRequired({ inputRequests: { user_name: NAME } });
    });
    tool('test_input_required_result_sampling', 'has the client sample', (_, { mcpReq }) => {
        const answer = inputResponse(mcpReq.inputResponses, 'capital_question');
        if (answer.kind === 'sampling') return say(answer.result.content.text);
        return inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?', 100) } });
    });
    tool('test_input_required_result_list_roots', 'asks for the roots', (_, { mcpReq }) => {
        const answer = inputResponse(mcpReq.inputResponses, 'client_roots');
        if (answer.kind === 'roots') return say(answer.roots.map(root => root.uri).join(' '));
        return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
    });
    tool('test_input_required_result_multiple_inputs', 'asks three things at once', async (_, ctx) => {
        const answers = ['user_name', 'greeting', 'client_roots'].map(key =>
            inputResponse(ctx.mcpReq.inputResponses, key)
        );
        if (answers.every(answer => answer.kind !== 'missing')) return say('three answers');
        return inputRequired({
            inputRequests: {
                user_name: NAME,
                greeting: sample('Generate a greeting', 50),
                client_roots: inputRequired.listRoots()
            },
            requestState: await seal({ asked: 3 }, ctx)
        });
    });
    tool('test_input_required_result_request_state', 'wants its state back', confirm);
    tool('test_input_required_result_tampered_state', 'wants its own state back', confirm);
    async function confirm(_, ctx) {
        const confirmed = acceptedContent(ctx.mcpReq.inputResponses, 'confirm') !== undefined;
        if (confirmed && ctx.mcpReq.requestState()?.asked === 'confirm') return say('state-ok');
        return inputRequired({
            inputRequests: { confirm: elicit('Please confirm', form({ ok: { type: 'boolean' } })) },
            requestState: await seal({ asked: 'confirm' }, ctx)
        });
    }
    tool('test_input_required_result_multi_round', 'asks twice', async (_, ctx) => {
        const { inputResponses, requestState } = ctx.mcpReq;
        const ask = async (key, question, state) =>
            inputRequired({ inputRequests: { [key]: question }, requestState: await seal(state, ctx) });
        const name = acceptedContent(inputResponses, 'step1')?.name;
        if (name) return ask('step2', elicit('Step 2: What is your favorite color?', form({ color: TEXT })), { name });
        const color = acceptedContent(inputResponses, 'step2')?.color;
        if (color) return say(`${requestState()?.name} likes ${color}`);
        return ask('step1', elicit('Step 1: What is your name?', form({ name: TEXT })), {});
    });
    tool('test_input_required_result_capabilities', 'asks only what this client can answer', (_, { mcpReq }) => {
        const can = mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
        return inputRequired({
            inputRequests: {
                ...(can.elicitation && { user_name: NAME }),
                ...(can.sampling && { greeting: sample('Generate a greeting', 50) })
            }
        });
    });

    server.registerPrompt(
        'test_input_required_result_prompt',
        { description: 'asks for its context' },
        ({ mcpReq }) => {
            const context = acceptedContent(mcpReq.inputResponses, 'user_context')?.context;
            if (context) return { messages: [{ role: 'user', content: { type: 'text', text: `Use ${context}.` } }] };
            const question = elicit('What context should the prompt use?', form({ context: TEXT }));
            return inputRequired({ inputRequests: { user_context: question } });
        }
    );
}

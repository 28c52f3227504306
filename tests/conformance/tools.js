// Tools that answer by themselves; those that ask the client something are in `questions.js`.

import { fromJsonSchema } from '@modelcontextprotocol/server';
import { z } from 'zod';

export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

export const say = text => ({ content: [{ type: 'text', text }] });

/** A red pixel, and a silent moment. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';

const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const resource = (uri, mimeType, text) => ({ type: 'resource', resource: { uri, mimeType, text } });

/** Keywords of JSON Schema 2020-12 that a server, or whoever is in between, could lose. */
const RICH_SCHEMA = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
        address: {
            $anchor: 'addressDef',
            type: 'object',
            properties: { street: { type: 'string' }, city: { type: 'string' } }
        }
    },
    properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' }
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false
};

/** A tool whose argument is also sent as the header `Mcp-Param-Region`. */
const REGION_SCHEMA = {
    type: 'object',
    properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
    required: ['region']
};

export function addTools(server, { changes }) {
    const tool = (name, description, body, inputSchema = z.object({})) =>
        server.registerTool(name, { description, inputSchema }, body);

    // The suite calls the first tool of the list without arguments.
    tool('test_simple_text', 'answers a text', () => say('This is a simple text response for testing.'));
    tool('test_image_content', 'answers an image', () => ({ content: [image] }));
    tool('test_audio_content', 'answers a sound', () => ({
        content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]
    }));
    tool('test_embedded_resource', 'answers a resource', () => ({
        content: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')]
    }));
    tool('test_multiple_content_types', 'answers a text, an image and a resource', () => ({
        content: [
            ...say('Multiple content types test:').content,
            image,
            resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}')
        ]
    }));
    tool('test_error_handling', 'always fails', () => {
        throw new Error('This tool intentionally returns an error for testing');
    });
    tool('test_tool_with_logging', 'logs three times', async (_, { mcpReq }) => {
        for (const text of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
            await mcpReq.log('info', text);
            await sleep(50);
        }
        return say('logged three times');
    });
    tool('test_logging_tool', 'logs, if the client wants to hear it', async (_, { mcpReq }) => {
        await mcpReq.log('info', 'not for everybody');
        return say('logged');
    });
    tool('test_tool_with_progress', 'reports progress three times', async (_, { mcpReq }) => {
        const progressToken = mcpReq._meta?.progressToken;
        for (const progress of [0, 50, 100]) {
            if (progressToken !== undefined) {
                const params = { progressToken, progress, total: 100 };
                await mcpReq.notify({ method: 'notifications/progress', params });
            }
            await sleep(50);
        }
        return say('done');
    });
    tool('test_reconnection', 'closes its stream, then answers', async (_, { http }) => {
        await sleep(50);
        http?.closeSSE?.();
        await sleep(100);
        return say('answered after the stream was closed');
    });
    tool('json_schema_2020_12_tool', 'has a rich schema', () => say('ok'), fromJsonSchema(RICH_SCHEMA));
    tool(
        'test_region',
        'has an argument that is also a header',
        ({ region }) => say(region),
        fromJsonSchema(REGION_SCHEMA)
    );
    tool('test_trigger_tool_change', 'says that the tools changed', async () => {
        changes.emit('tools');
        await server.server.sendToolListChanged();
        return say('said');
    });
    tool('test_trigger_prompt_change', 'says that the prompts changed', async () => {
        changes.emit('prompts');
        await server.server.sendPromptListChanged();
        return say('said');
    });
}

// Resources, which can be watched, and prompts, which can be completed.

import { completable, ResourceTemplate } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { PNG } from './tools.js';

export function addResources(server) {
    const text = (name, uri, content) =>
        server.registerResource(name, uri, { description: name, mimeType: 'text/plain' }, () => ({
            contents: [{ uri, mimeType: 'text/plain', text: content }]
        }));
    text('static text', 'test://static-text', 'This is the content of the static text resource.');
    text('watched', 'test://watched-resource', 'This can be watched.');
    server.registerResource(
        'static binary',
        'test://static-binary',
        { description: 'static binary', mimeType: 'image/png' },
        () => ({ contents: [{ uri: 'test://static-binary', mimeType: 'image/png', blob: PNG }] })
    );
    server.registerResource(
        'template',
        new ResourceTemplate('test://template/{id}/data', { list: undefined }),
        { description: 'data by id', mimeType: 'application/json' },
        (uri, { id }) => ({
            contents: [
                {
                    uri: uri.href,
                    mimeType: 'application/json',
                    text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
                }
            ]
        })
    );
    // Nothing here ever changes, so whoever watches hears nothing.
    server.server.setRequestHandler('resources/subscribe', () => ({}));
    server.server.setRequestHandler('resources/unsubscribe', () => ({}));
}

export function addPrompts(server) {
    const user = content => ({ role: 'user', content });
    const text = words => ({ type: 'text', text: words });
    const prompt = (name, argsSchema, body) =>
        server.registerPrompt(name, { description: name, ...(argsSchema && { argsSchema }) }, body);

    prompt('test_simple_prompt', undefined, () => ({ messages: [user(text('This is a simple prompt for testing.'))] }));
    const words = completable(z.string(), value => ['hello', 'help', 'world'].filter(word => word.startsWith(value)));
    prompt('test_prompt_with_arguments', z.object({ arg1: words, arg2: z.string() }), ({ arg1, arg2 }) => ({
        messages: [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))]
    }));
    prompt('test_prompt_with_embedded_resource', z.object({ resourceUri: z.string() }), ({ resourceUri }) => ({
        messages: [
            user({
                type: 'resource',
                resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' }
            }),
            user(text('Please process the embedded resource above.'))
        ]
    }));
    prompt('test_prompt_with_image', undefined, () => ({
        messages: [
            user({ type: 'image', data: PNG, mimeType: 'image/png' }),
            user(text('Please analyze the image above.'))
        ]
    }));
}

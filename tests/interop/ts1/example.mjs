// A client's own file before the servers that people have, with the official TypeScript SDK 1.x.
//
//     node example.mjs FOLDER [on-demand] -- outlast --config FILE
//
// The servers are started as people start them (`npx -y …`), from the folder of this program, where they are installed.
// FOLDER is one that they may write to. One of the servers is none: it says something and ends. Prints one JSON line
// for each check.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
const onDemand = process.argv[3] === 'on-demand';
const target = process.argv.slice(process.argv.indexOf('--') + 1);
const LISTED_MS = 60_000;

const transport = new StdioClientTransport({
    command: target[0],
    args: target.slice(1),
    cwd: import.meta.dirname,
    env: process.env
});
const client = new Client({ name: 'interop-ts1-example', version: '1.0.0' }, { capabilities: {} });
const told = [];
client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void told.push(JSON.stringify(params)));

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
const words = result => result.content.map(part => part.text ?? '').join('\n');

function expect(holds, what) {
    if (!holds) throw new Error(what);
}

async function names() {
    if (!onDemand) return (await client.listTools()).tools.map(tool => tool.name);
    const found = await client.callTool({ name: 'find_tools', arguments: { query: '', limit: 50 } });
    return JSON.parse(words(found)).tools.map(tool => tool.name);
}

/** A first `npx` takes longer than a list may wait. */
async function listed() {
    const wanted = ['filesystem__write_file', 'everything__echo', 'memory__create_entities', 'time__convert_time'];
    const end = Date.now() + LISTED_MS;
    for (;;) {
        const found = await names();
        if (wanted.every(name => found.includes(name))) return found;
        expect(Date.now() < end, `not listed: ${wanted.filter(name => !found.includes(name))}, but ${found}`);
        await sleep(500);
    }
}

async function call(name, args) {
    const request = onDemand ? { name: 'call_tool', arguments: { name, arguments: args } } : { name, arguments: args };
    const result = await client.callTool(request);
    expect(!result.isError, `${name}: ${words(result)}`);
    return words(result);
}

const checks = {
    async lists() {
        const found = await listed();
        expect(!found.some(name => name.startsWith('says-hello')), 'a program that is no server has tools');
        const shown = (await client.listTools()).tools.map(tool => tool.name);
        const ours = ['find_tools', 'describe_tool', 'call_tool'];
        if (onDemand) expect(String(shown) === String(ours), `shown are ${shown}`);
        return `${found.length} tools of four servers`;
    },
    async filesystem() {
        const path = join(folder, 'written.txt');
        await call('filesystem__write_file', { path, content: 'by a tool' });
        expect(readFileSync(path, 'utf8') === 'by a tool', 'the file says something else');
        writeFileSync(path, 'by a person');
        expect((await call('filesystem__read_text_file', { path })).includes('by a person'), 'it reads something else');
        expect((await call('filesystem__list_directory', { path: folder })).includes('written.txt'), 'it is not listed');
        return 'written, read, listed';
    },
    async memory() {
        const entities = [{ name: 'Ada', entityType: 'person', observations: ['writes programs'] }];
        await call('memory__create_entities', { entities });
        expect((await call('memory__search_nodes', { query: 'Ada' })).includes('writes programs'), 'it has forgotten');
        return 'remembered';
    },
    async time() {
        const noon = { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' };
        expect((await call('time__convert_time', noon)).includes('21:00'), 'another time');
        return 'noon here is nine in the evening there';
    },
    async everything() {
        expect((await call('everything__echo', { message: 'a word' })).includes('a word'), 'another echo');
        const prompts = (await client.listPrompts()).prompts;
        expect(prompts.some(prompt => prompt.name.startsWith('everything__')), 'no prompts');
        const { resources } = await client.listResources();
        expect(resources.length > 0, 'no resources');
        await client.readResource({ uri: resources[0].uri });
        return `echoes; ${prompts.length} prompts, ${resources.length} resources`;
    },
    async missing() {
        // Whoever looks at a list is told which server is missing.
        await client.listTools();
        expect(told.some(text => text.includes('says-hello')), `told was ${told}`);
        return 'the program that is no server is named, and troubles nobody';
    }
};

let failed = 0;
const say = (check, ok, detail) => console.log(JSON.stringify({ check, ok, detail: String(detail) }));
await client.connect(transport);
for (const [name, check] of Object.entries(checks)) {
    try {
        say(name, true, await check());
    } catch (error) {
        failed++;
        say(name, false, error.message);
    }
}
await client.close();
say('close', true, '');
process.exit(failed === 0 ? 0 : 1);

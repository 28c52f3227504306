// A receiver of callbacks that checks them with the library of Standard Webhooks, and a client that makes a task whose
// end it does not wait for: node callbacks.mjs OUTLAST COMMAND...
//
// Prints one line: what was checked, or why it failed.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Webhook } from 'standardwebhooks';
import { z } from 'zod';

const [outlast, command, ...args] = process.argv.slice(2);
const secret = 'whsec_' + randomBytes(32).toString('base64');
const folder = mkdtempSync(join(tmpdir(), 'callbacks-'));

// The first answer is an error, so that the callback comes twice under one id.
const seen = [];
const receiver = createServer((request, response) => {
    const parts = [];
    request.on('data', part => parts.push(part));
    request.on('end', () => {
        seen.push({ headers: request.headers, body: Buffer.concat(parts).toString() });
        response.writeHead(seen.length === 1 ? 503 : 204).end();
        if (seen.length === 2) done(check());
    });
});

function check() {
    const [first, second] = seen;
    for (const { headers, body } of seen) new Webhook(secret).verify(body, headers);
    const forged = { ...second.headers, 'webhook-id': 'cb_0_0' };
    try {
        new Webhook(secret).verify(second.body, forged);
        throw new Error('a forged id was accepted');
    } catch (error) {
        if (error.name !== 'WebhookVerificationError' && !/signature/i.test(error.message)) throw error;
    }
    if (first.headers['webhook-id'] !== second.headers['webhook-id']) throw new Error('the ids differ');
    const { type, data } = JSON.parse(second.body);
    if (type !== 'call.completed' || data.tool !== 'slow') throw new Error(second.body);
    return `two sendings of one callback, both signed: ${type} of ${data.tool}`;
}

let child;
function done(line) {
    console.log(line);
    child?.kill();
    rmSync(folder, { recursive: true, force: true });
    process.exit(0);
}

function failed(error) {
    console.log(`failed: ${error?.stack ?? error}`);
    child?.kill();
    process.exit(1);
}

process.on('uncaughtException', failed);
process.on('unhandledRejection', failed);
setTimeout(() => failed('nothing came within 40 s'), 40_000);

receiver.listen(0, '127.0.0.1', async () => {
    const url = `http://127.0.0.1:${receiver.address().port}/hook`;
    const file = join(folder, 'outlast.toml');
    writeFileSync(
        file,
        [
            '[servers.fixture]',
            `command = ${JSON.stringify(command)}`,
            `args = ${JSON.stringify(args)}`,
            '[callbacks.ops]',
            `url = "${url}"`,
            'secret = "${HOOK_SECRET}"',
            'allow = ["127.0.0.1"]',
            '[clients."*"]',
            'callback = "ops"',
            '[store]',
            `state = ${JSON.stringify(join(folder, 'state'))}`,
        ].join('\n')
    );
    const line = ['serve', '--listen', '127.0.0.1:0', '--config', file];
    child = spawn(outlast, line, { env: { ...process.env, HOOK_SECRET: secret }, stdio: ['ignore', 'ignore', 'pipe'] });
    const address = await new Promise(found => {
        let said = '';
        child.stderr.on('data', part => {
            said += part;
            const match = said.match(/listening on (http:\S+)/);
            if (match) found(match[1]);
        });
    });
    const client = new Client({ name: 'leaves', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(new URL(address)));
    const request = { method: 'tools/call', params: { name: 'slow', arguments: { ms: 500 }, task: { ttl: 60_000 } } };
    await client.request(request, z.any());
    await client.close();
});

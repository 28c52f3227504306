// Starts outlast, speaks MCP to it, and holds a browser.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = dirname(fileURLToPath(import.meta.url));
const { OUTLAST, CHROMIUM = '/usr/bin/chromium' } = process.env;
const LIMIT = 15_000;

const running = new Set();

/** Starts outlast and waits for the address that it prints. */
async function start(words, said) {
    const child = spawn(OUTLAST, words, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, DISPLAY: '', WAYLAND_DISPLAY: '' } });
    running.add(child);
    let stderr = '';
    const found = await new Promise((done, fail) => {
        const late = setTimeout(() => fail(new Error(`no address: ${stderr}`)), LIMIT);
        child.stderr.setEncoding('utf8').on('data', text => {
            stderr += text;
            const match = said.exec(stderr);
            if (match) { clearTimeout(late); done(match); }
        });
        child.on('exit', () => fail(new Error(`it has ended: ${stderr}`)));
    });
    const stop = () => new Promise(done => {
        running.delete(child);
        if (child.exitCode !== null) return done();
        child.on('exit', done);
        child.kill('SIGTERM');
    });
    return { child, found, stop, stderr: () => stderr };
}

const folders = [];
process.on('exit', () => folders.forEach(path => rmSync(path, { recursive: true, force: true })));

export const folder = () => {
    folders.push(mkdtempSync(join(tmpdir(), 'outlast-ui-')));
    return folders.at(-1);
};

/** `outlast serve`, with the fixture's server. */
export async function serve(state, more = [], listen = '127.0.0.1:0') {
    const words = ['serve', '--listen', listen, '--state', state, ...more, '--', process.execPath, join(here, 'server.mjs')];
    const { child, found, stop } = await start(words, /listening on http:\/\/(.+)\/mcp/);
    return { child, address: found[1], page: `http://${found[1]}/outlast/`, mcp: `http://${found[1]}/mcp`, stop };
}

/** `outlast serve --config`. */
export async function serveFile(state, toml) {
    const path = join(folder(), 'outlast.toml');
    writeFileSync(path, `${toml}\n[servers.fixture]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(join(here, 'server.mjs'))}]\n`);
    const words = ['serve', '--listen', '127.0.0.1:0', '--state', state, '--config', path];
    const { found, stop } = await start(words, /listening on http:\/\/(.+)\/mcp/);
    return { address: found[1], page: `http://${found[1]}/outlast/`, mcp: `http://${found[1]}/mcp/fixture`, stop };
}

/** `outlast ui`. */
export async function ui(state) {
    const { found, stop } = await start(['ui', '--no-browser', '--state', state], /dashboard is at (\S+)/);
    return { page: found[1], stop };
}

/** `outlast -- …`, with a client on its standard streams. */
export function wrap(state, more = []) {
    const words = ['--state', state, ...more, '--', process.execPath, join(here, 'server.mjs')];
    const child = spawn(OUTLAST, words, { stdio: ['pipe', 'pipe', 'ignore'] });
    running.add(child);
    let [next, rest] = [0, ''];
    const waiting = new Map();
    child.stdout.setEncoding('utf8').on('data', text => {
        const lines = (rest + text).split('\n');
        rest = lines.pop();
        for (const message of lines.map(line => JSON.parse(line))) {
            if (message.id !== undefined && !message.method) waiting.get(message.id)?.(message);
        }
    });
    const post = message => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
    const ask = (method, params) => new Promise(done => {
        waiting.set(++next, done);
        post({ id: next, method, params });
    });
    const open = async () => {
        await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'wrapped', version: '3' } });
        post({ method: 'notifications/initialized' });
    };
    return { open, call: (name, args = {}) => ask('tools/call', { name, arguments: args }), end: () => { running.delete(child); child.kill(); } };
}

/** A client over HTTP: a legacy session. */
export async function client(mcp, { token, name = 'tester' } = {}) {
    let [next, session] = [0, undefined];
    const post = async message => {
        const response = await fetch(mcp, {
            method: 'POST',
            headers: {
                'content-type': 'application/json', accept: 'application/json, text/event-stream',
                ...(session && { 'mcp-session-id': session }), ...(token && { authorization: `Bearer ${token}` }),
            },
            body: JSON.stringify({ jsonrpc: '2.0', ...message }),
        });
        session ??= response.headers.get('mcp-session-id');
        const text = await response.text();
        const lines = text.split('\n').filter(line => line.startsWith('data: {')).map(line => JSON.parse(line.slice(6)));
        return lines.find(line => line.id === message.id && !line.method) ?? (text.startsWith('{') ? JSON.parse(text) : {});
    };
    const ask = (method, params) => post({ id: ++next, method, params });
    await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '1' } });
    await post({ method: 'notifications/initialized' });
    const call = (tool, args = {}, more = {}) => ask('tools/call', { name: tool, arguments: args, ...more });
    return { ask, call };
}

let browser;

/** A tab of a browser of its own; what goes wrong in it is an error of the test. */
export async function tab(address, { scheme = 'light', width = 1000, height = 800, quiet = [] } = {}) {
    assert.ok(existsSync(CHROMIUM), `no browser at ${CHROMIUM}`);
    browser ??= await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height }, reducedMotion: 'reduce' });
    const page = await context.newPage();
    page.setDefaultTimeout(LIMIT);
    const wrong = [];
    page.on('pageerror', error => wrong.push(String(error)));
    page.on('console', message => {
        if (message.type() === 'error' && !quiet.some(word => message.text().includes(word))) wrong.push(message.text());
    });
    page.on('request', request => {
        if (new URL(request.url()).protocol.startsWith('http') && !request.url().startsWith(address.split('/outlast')[0])) {
            wrong.push(`a request to ${request.url()}`);
        }
    });
    await page.goto(address);
    return { page, wrong, close: () => context.close() };
}

export async function end() {
    await browser?.close();
    for (const child of running) child.kill('SIGKILL');
}

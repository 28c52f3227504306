// A registry on loopback that has the npm packages of one folder and nothing else: `node registry.mjs FOLDER`.
// Says where it listens, and ends with its standard input.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

const folder = process.argv[2];
const files = readdirSync(folder).filter(name => name.endsWith('.tgz'));

function describe(file, origin) {
    const bytes = readFileSync(join(folder, file));
    const manifest = JSON.parse(execFileSync('tar', ['-xzOf', join(folder, file), 'package/package.json']));
    const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
    manifest.dist = { tarball: `${origin}/-/${file}`, integrity };
    return manifest;
}

const server = createServer((request, response) => {
    const origin = `http://${request.headers.host}`;
    const name = decodeURIComponent(request.url.split('?')[0].slice(1));
    if (files.includes(name.replace(/^-\//, ''))) return response.end(readFileSync(join(folder, name.slice(2))));
    const manifest = files.map(file => describe(file, origin)).find(found => found.name === name);
    if (!manifest) return response.writeHead(404).end('{}');
    const { version } = manifest;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions: { [version]: manifest } }));
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.on('end', () => process.exit()).resume();

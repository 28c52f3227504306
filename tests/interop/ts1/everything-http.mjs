// `server-everything` over HTTP, on a port of loopback; by itself it would take a fixed port
// of every address, and say which port it was asked for instead of the one it got.

import { Server } from 'node:http';
import { PORT } from '../js/listen.mjs';

const listen = Server.prototype.listen;
Server.prototype.listen = function (_port, done) {
    this.once('listening', () => console.error(`listening on http://127.0.0.1:${this.address().port}/mcp`));
    return listen.call(this, PORT, '127.0.0.1', done);
};
await import('./node_modules/@modelcontextprotocol/server-everything/dist/transports/streamableHttp.js');

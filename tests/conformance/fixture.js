// What the server offers. The names and answers are those that the suite's scenarios ask for.

import { EventEmitter } from 'node:events';
import { createRequestStateCodec, McpServer } from '@modelcontextprotocol/server';
import { addQuestions } from './questions.js';
import { addPrompts, addResources } from './resources.js';
import { addSkills } from './skills.js';
import { addPlainTools, addTasks, EXTENSION as TASKS } from './tasks.js';
import { addTools } from './tools.js';

/** Says `tools` or `prompts` when a client asked for that list to change. */
export const changes = new EventEmitter();

const sealed = createRequestStateCodec({ key: 'a key that every server of this fixture shares' });

/** Whether the server has tasks; without, somebody else has to make them. */
const hasTasks = !process.argv.includes('--no-tasks');

/** Whether it has nothing to offer: what stands beside another server at one address. */
const hasNothing = process.argv.includes('--nothing');

/** Makes one server; the SDK asks for one per connection, session or request. */
export function build({ era }) {
    if (hasNothing) return new McpServer({ name: 'nothing', version: '1.0.0' }, { capabilities: {} });
    const modern = era === 'modern';
    const server = new McpServer(
        { name: 'conformance', version: '1.0.0' },
        {
            capabilities: {
                completions: {},
                ...(modern && hasTasks && { extensions: { [TASKS]: {} } }),
                logging: {},
                prompts: { listChanged: true },
                resources: { subscribe: true },
                tools: { listChanged: true }
            },
            requestState: { verify: sealed.verify }
        }
    );
    addTools(server, { changes });
    addQuestions(server, { seal: sealed.mint });
    addResources(server);
    addPrompts(server);
    addSkills(server);
    if (modern && hasTasks) addTasks(server);
    if (modern && !hasTasks) addPlainTools(server);
    return server;
}

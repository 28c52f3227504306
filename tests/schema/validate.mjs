// Holds every message that outlast sent against the protocol's own schemas.
//
//     node validate.mjs PACKAGES TAPES
//
// PACKAGES is a folder with `ajv` in its node_modules, TAPES one that the testkit wrote (`tape.rs`).
// `cargo xtask schema` does both. What outlast makes itself must fit, always. What it passes on must fit
// unless what came in did not: the scenarios' peers say no more than a scenario needs.

import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { MUST_BE_SEEN, NOT_IN_A_SCHEMA } from './expected.mjs';
import { definition, Schemas } from './schemas.mjs';
import { Scenario } from './scenario.mjs';

const [packages, tapes] = process.argv.slice(2);
const schemas = new Schemas(createRequire(join(packages, 'package.json')), import.meta.dirname);

/** What fits, by definition: one message to try the validator with, and how many there were. */
const fitting = new Map();
const findings = new Map();
let passedOn = 0;

/** What a server asks stands in a task as the server said it. */
function withoutQuestions(value) {
    const { params } = value;
    if (params?.inputRequests) return { ...value, params: { ...params, inputRequests: {} } };
    return value.inputRequests ? { ...value, inputRequests: {} } : value;
}

function judge(scenario, entry) {
    const { kind, value } = entry;
    if (kind === undefined) {
        const known = entry.method in NOT_IN_A_SCHEMA || scenario.knows(entry);
        return known ? undefined : `no schema knows \`${entry.method ?? entry.text}\``;
    }
    const why = schemas.fault(kind, value);
    if (why && (scenario.hasFaulty(kind) || schemas.fault(kind, withoutQuestions(value)) === undefined)) {
        passedOn += 1;
        return undefined;
    }
    if (!why) {
        const seen = fitting.get(kind) ?? { value, count: 0 };
        fitting.set(kind, { ...seen, count: seen.count + 1 });
    }
    return why && `${kind}: ${why}`;
}

const files = readdirSync(tapes).filter(name => name.endsWith('.jsonl'));
for (const name of files) {
    const scenario = new Scenario(schemas);
    for (const line of readFileSync(join(tapes, name), 'utf8').split('\n').filter(Boolean)) {
        const [way, peer, text] = JSON.parse(line);
        for (const entry of scenario.take(way, peer, text)) {
            const finding = way.startsWith('>') && judge(scenario, entry);
            if (finding && !findings.has(finding)) findings.set(finding, { name, text });
        }
    }
}

/** Takes away what must be there: a validator that does not notice checks nothing. */
function refusesLess(kind, value) {
    const needed = definition.required(schemas, kind);
    const blind = needed.filter(key => {
        const { [key]: _, ...less } = value;
        return schemas.fault(kind, less) === undefined;
    });
    if (blind.length > 0) findings.set(`${kind} is accepted without ${blind.join(', ')}`, {});
    return needed.length;
}

let mutants = 0;
for (const [kind, { value }] of fitting) mutants += refusesLess(kind, value);
for (const kind of MUST_BE_SEEN) {
    if (!fitting.has(kind)) findings.set(`${kind}: no scenario made outlast send one that fits`, {});
}

for (const [finding, { name, text }] of findings) {
    console.log(`FAIL  ${finding}`);
    if (text) console.log(`      ${text.slice(0, 600)}\n      (${name})`);
}
if (process.argv.includes('--counts')) {
    for (const [kind, { count }] of [...fitting].sort()) console.log(`${kind} ${count}`);
}
const sent = [...fitting.values()].reduce((sum, { count }) => sum + count, 0);
console.log(
    `${sent} messages of ${fitting.size} kinds in ${files.length} worlds fit their schemas, ` +
        `${passedOn} were passed on as they came; ${mutants} broken ones were refused`
);
if (files.length === 0) console.log('FAIL  no tapes');
process.exitCode = findings.size > 0 || files.length === 0 ? 1 : 0;

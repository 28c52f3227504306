// The schemas of every revision, and which definition a message must fit.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
export const MODERN = '2026-07-28';
const TASKS = 'ext-tasks-draft';

/** Requests whose answer is not named after them. */
const ANSWERS = {
    ping: 'EmptyResult',
    'logging/setLevel': 'EmptyResult',
    'resources/subscribe': 'EmptyResult',
    'resources/unsubscribe': 'EmptyResult',
    // Only tools are called as tasks.
    'tasks/result': 'CallToolResult'
};

const MODERN_ERRORS = {
    [-32020]: 'HeaderMismatchError',
    [-32021]: 'MissingRequiredClientCapabilityError',
    [-32022]: 'UnsupportedProtocolVersionError'
};

export class Schemas {
    #files = {};

    constructor(require, folder) {
        const ajv = name => require(name).default;
        const formats = ajv('ajv-formats');
        for (const revision of [...LEGACY, MODERN, TASKS]) {
            const schema = JSON.parse(readFileSync(join(folder, `${revision}.json`), 'utf8'));
            const Ajv = ajv(schema.$defs ? 'ajv/dist/2020.js' : 'ajv');
            const validator = formats(new Ajv({ strict: false }));
            validator.addSchema(schema, revision);
            const key = schema.$defs ? '$defs' : 'definitions';
            this.#files[revision] = { validator, key, definitions: schema[key], methods: methods(schema[key]) };
        }
    }

    has(revision) {
        return revision in this.#files;
    }

    /** The definitions `REVISION/NAME` of a method's request or notification. */
    of(revision, method) {
        const files = revision === MODERN ? [MODERN, TASKS] : [revision];
        const file = files.find(file => method in this.#files[file].methods);
        return file && `${file}/${this.#files[file].methods[method]}`;
    }

    /** The definition of a method's result. */
    result(revision, method, result) {
        if (method === 'tools/call' && result?.task) return `${revision}/CreateTaskResult`;
        if (revision === MODERN && result?.resultType === 'task') return `${TASKS}/CreateTaskResult`;
        if (revision === MODERN && result?.resultType === 'input_required') return `${MODERN}/InputRequiredResult`;
        if (method in ANSWERS) return `${revision}/${ANSWERS[method]}`;
        return this.of(revision, method)?.replace(/Request$/, 'Result');
    }

    error(revision, code) {
        if (revision === MODERN && code in MODERN_ERRORS) return `${MODERN}/${MODERN_ERRORS[code]}`;
        return 'JSONRPCErrorResponse' in this.#files[revision].definitions
            ? `${revision}/JSONRPCErrorResponse`
            : `${revision}/JSONRPCError`;
    }

    /** The definition behind a name. */
    named(kind) {
        const [file, name] = kind.split('/');
        return this.#files[file].definitions[name];
    }

    /** Why a value does not fit. */
    fault(kind, value) {
        const [file, name] = kind.split('/');
        const { validator, key } = this.#files[file];
        const validate = validator.getSchema(`${file}#/${key}/${name}`);
        if (!validate) throw new Error(`no definition ${kind}`);
        if (!validate(value)) return validator.errorsText(validate.errors, { dataVar: '' });
        return undeclared(this, kind, value);
    }
}

/** Objects are open in these schemas, so a name that is misspelt and not required would pass. */
function undeclared(schemas, kind, value) {
    const [file, name] = kind.split('/');
    const task = { CreateTaskResult: value.task ?? value, GetTaskResult: value, CancelTaskResult: value }[name];
    if (!task?.taskId) return undefined;
    const known = [
        ...Object.keys(schemas.named(`${file}/Task`).properties),
        ...['_meta', 'resultType', 'result', 'error', 'inputRequests']
    ];
    const odd = Object.keys(task).filter(key => !known.includes(key));
    return odd.length > 0 ? `a task has no ${odd.join(', ')}` : undefined;
}

/** Method to definition. */
function methods(definitions) {
    const found = {};
    for (const [name, schema] of Object.entries(definitions)) {
        if (!/(Request|Notification)$/.test(name) || /^(Client|Server)/.test(name)) continue;
        const parts = [schema, ...(schema.allOf ?? [])];
        const method = parts.map(part => part.properties?.method?.const).find(Boolean);
        if (method) found[method] = name;
    }
    return found;
}

export const definition = {
    /** What a definition requires at its top. */
    required(schemas, kind) {
        const [file] = kind.split('/');
        const collect = schema => [
            ...(schema.required ?? []),
            ...(schema.allOf ?? []).flatMap(collect),
            ...(schema.$ref ? collect(schemas.named(`${file}/${schema.$ref.split('/').at(-1)}`)) : [])
        ];
        return [...new Set(collect(schemas.named(kind)))];
    }
};

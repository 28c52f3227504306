import { Nothing, Said, State, Sure, post, useFilter, useFirst, useNow } from './parts.jsx';
import { whole } from './text.js';

const OPEN = ['working', 'input_required'];

export function Tasks({ state }) {
    const now = useNow();
    const words = task => [task.ticket, task.tool ?? task.method, task.server, task.state];
    const [kept, field] = useFilter(state.tasks, words, 'tasks');
    const [rows, more] = useFirst(kept, 50);
    return <>
        {field}
        {rows.length === 0 && <Nothing>{state.tasks.length ? 'No task fits.' : 'There are no tasks.'}</Nothing>}
        <ul class="rows">{rows.map(task => <Task key={task.ticket} task={task} now={now} />)}</ul>
        {more}
    </>;
}

function Task({ task, now }) {
    const open = OPEN.includes(task.state);
    const gone = open && task.owner?.alive === false;
    const [made, changed] = [now - Date.parse(task.createdAt), now - Date.parse(task.lastUpdatedAt)];
    return <li class="row">
        <div class="what"><b><Said most={80}>{task.tool ?? task.method}</Said></b> <span class="of">of <Said most={40}>{task.server}</Said></span></div>
        <div class="age">{open && <b>{whole(made)}</b>} <State word={task.state.replace('_', ' ')} kind={open ? 'running' : task.state} /></div>
        <p class="small">
            <code>{task.ticket}</code> begun {whole(made)} ago, changed {whole(changed)} ago
            {gone && '; the process that ran it has ended'}
            {task.statusMessage && <>: <q><Said most={200}>{task.statusMessage}</Said></q></>}
        </p>
        {task.questions?.length > 0 && <p class="small">The server asks its client something.</p>}
        {open && <div class="does"><Sure label="Cancel" sure="Yes, cancel it" about={`task ${task.tool ?? task.method}`}
            act={() => post(`tasks/${encodeURIComponent(task.ticket)}/cancel`)} /></div>}
    </li>;
}

// What the check must come across, or it has checked less than it says.

/** Each has to be sent by outlast at least once, and to fit. */
export const MUST_BE_SEEN = [
    // What outlast makes.
    '2025-11-25/CreateTaskResult',
    '2025-11-25/GetTaskResult',
    '2025-11-25/ListTasksResult',
    '2025-11-25/CancelTaskResult',
    '2025-11-25/TaskStatusNotification',
    '2025-11-25/ProgressNotification',
    '2025-11-25/CancelledNotification',
    '2025-11-25/JSONRPCErrorResponse',
    '2025-11-25/PingRequest',
    '2026-07-28/CancelledNotification',
    '2026-07-28/JSONRPCErrorResponse',
    '2026-07-28/HeaderMismatchError',
    '2026-07-28/MissingRequiredClientCapabilityError',
    'ext-tasks-draft/CreateTaskResult',
    'ext-tasks-draft/GetTaskResult',
    'ext-tasks-draft/UpdateTaskResult',
    'ext-tasks-draft/CancelTaskResult',
    // What it edits.
    '2025-11-25/InitializeResult',
    '2025-11-25/ListToolsResult',
    '2025-11-25/CallToolRequest',
    '2025-11-25/CallToolResult',
    '2025-11-25/ElicitRequest',
    '2026-07-28/DiscoverResult',
    '2026-07-28/CallToolRequest',
    '2026-07-28/CallToolResult'
];

/** Methods that outlast sends by itself although no schema has them, and where they come from. */
export const NOT_IN_A_SCHEMA = {
    'notifications/requests/resumePolicy': 'SEP-975',
    'requests/getStatus': 'SEP-975',
    'requests/resume': 'SEP-975',
    'dev.outlast/requests/ended': 'docs/resume.md'
};

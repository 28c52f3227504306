// The skills extension, which the SDK has: two skills, one of them with more files.

import { memorySkillFiles, SkillsExtension } from '@modelcontextprotocol/server/ext/skills';

const skill = (name, description) => `---\nname: ${name}\ndescription: ${description}\n---\n\n# ${name}\n`;

const catalog = await SkillsExtension.load(
    memorySkillFiles({
        'greeting/SKILL.md': skill('greeting', 'How to greet people'),
        'greeting/references/GUIDE.md': 'Be brief.\n',
        'reporting/SKILL.md': skill('reporting', 'How to write a report')
    })
);

export const addSkills = server => catalog.attach(server);

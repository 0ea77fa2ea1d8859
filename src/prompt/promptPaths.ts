/** Which files are prompt files by their path: one list of patterns for the editor, the tree and the terminal. */
const templates = 'j2,jinja,jinja2,hbs,handlebars,mustache,liquid,njk,nunjucks';
const data = 'yaml,yml,json,jsonl';
const code = 'py,ts,js,mjs,cjs,mts,cts';

/** The default of `firstToken.promptFiles`. A later pattern has the last word; `!` leaves out. */
export const defaultPromptFiles: readonly string[] = [
  `**/*{prompt,system_message,systemmessage}*.{${templates},txt,${data},${code}}`,
  `**/*instruction*.{${templates},txt}`,
  `**/*{prompt,prompts}/**/*.{${templates},txt,md,${data},${code}}`,
  `!**/*.{test,spec,d}.{${code},tsx,jsx}`,
  '!**/test_*',
  '!**/README*',
  '!**/{package,package-lock,tsconfig,config}*.json',
  '**/*.prompt.md',
  '**/*.prompt',
  '**/*.prompty',
  '**/*.prompt.{yml,yaml,json,txt}',
  '**/*.{poml,baml}',
  '**/skprompt.txt',
  '**/promptfooconfig*.{yaml,yml,json}',
  '**/*.{instructions,agent,chatmode}.md',
  '**/{SKILL,CLAUDE,AGENTS,copilot-instructions}.md',
  '**/.claude/{commands,skills,agents}/**/*.md',
  '**/*{chat_template,chattemplate}*.{jinja,jinja2,j2}',
];

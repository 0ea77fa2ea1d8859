/** What the lens says about every prompt of the sample workspace, with no endpoint selected. Places are checked by reading the files; token counts are those of o200k. */

/** One prompt file. `lens`: the top lens of each prompt, without the word "about"; `breaks`: line and text of each place that warns. */
export interface SampleFile {
  readonly file: string;
  readonly format: string;
  readonly lens: readonly string[];
  readonly breaks: readonly (readonly [number, string])[];
}

const one = (file: string, format: string, lens: string, ...breaks: readonly (readonly [number, string])[]): SampleFile => ({ file, format, lens: [lens], breaks });

export const sampleFiles: readonly SampleFile[] = [
  one('release.prompt', 'dotprompt', 'Cache: up to 272 of 277 tokens (98 %) on vLLM · while `changes` keeps its value'),
  one('request.prompt.json', 'request-json', '280 tokens, all static, but not cached on Anthropic: the cache_control marker comes before the minimum of 1,024 tokens'),
  one('summary.prompt.yml', 'github-models', 'Cache: up to 272 of 275 tokens (99 %) on vLLM · ends at line 28: {{input}}'),
  one('support.prompt.md', 'markdown', '235 tokens, all static'),
  one('support.prompty', 'prompty', 'Cache: nothing of 271 tokens on vLLM · ends at line 10: {{current_time}}', [10, '{{current_time}}']),
  one('support-fixed.prompty', 'prompty', 'Cache: up to 256 of 271 tokens (94 %) on vLLM · ends at line 31: {{current_time}}'),
  one('triage.prompt.jinja', 'jinja', 'Cache: up to 272 of 286 tokens (95 %) on vLLM · 2 variants · ends at line 23: {{ message }}'),
  one('prompts/assistants/.claude/commands/release-notes.md', 'claude-markdown', 'Cache: nothing of 285 tokens + hidden tokens on vLLM · ends at line 5: !`git log --oneline -20`', [5, '!`git log --oneline -20`']),
  one('prompts/assistants/AGENTS.md', 'markdown', '70 tokens, all static'),
  one('prompts/assistants/CLAUDE.md', 'markdown', '106 tokens, all static'),
  one('prompts/assistants/answer.prompt.md', 'markdown', '275 tokens, all static'),
  one('prompts/assistants/mechanic.agent.md', 'markdown', '784 tokens, all static'),
  one('prompts/assistants/skills/sizing/SKILL.md', 'markdown', '55 tokens, all static'),
  one('prompts/assistants/tone.instructions.md', 'markdown', '18 tokens, all static'),
  {
    file: 'prompts/baml/ticket.baml',
    format: 'baml',
    lens: [
      'Cache: up to 1,044 of 1,046 tokens (99 %) + hidden tokens on Anthropic · ends at line 97: {{ message }}',
      'Cache: nothing of 1,046 tokens + hidden tokens on Anthropic · ends at line 184: {{ message }} · no cache_control marker, so nothing is cached (up to 1,044 with one)',
    ],
    breaks: [],
  },
  one('prompts/chat-template/chat_template.jinja', 'chat-template', 'Cache: up to 16 of 56 tokens (29 %) on vLLM · ends at line 4: {{- "Today Date: " + date_string + "\\n\\…'),
  {
    file: 'prompts/code/answers.py',
    format: 'python',
    lens: [
      'Cache: nothing of 270 tokens on vLLM · ends at line 25: {datetime.now()}',
      'Cache: up to 256 of 270 tokens (95 %) on vLLM · ends at line 48: {datetime.now()}',
      'Cache: up to 256 of 270 tokens (95 %) on vLLM · ends at line 52: FIXED_PROMPT',
    ],
    breaks: [[25, '{datetime.now()}']],
  },
  {
    file: 'prompts/code/answers.ts',
    format: 'javascript',
    lens: ['Cache: nothing of 270 tokens on vLLM · ends at line 24: ${new Date().toISOString()}', 'Cache: up to 256 of 271 tokens (94 %) on vLLM · ends at line 47: ${new Date().toISOString()}'],
    breaks: [[24, '${new Date().toISOString()}']],
  },
  one('prompts/dotprompt/reply.prompt', 'dotprompt', 'Cache: nothing of 277 tokens on vLLM · ends at line 11: {{requestId}}', [11, '{{requestId}}']),
  one('prompts/dotprompt/reply-fixed.prompt', 'dotprompt', 'Cache: up to 256 of 275 tokens (93 %) on vLLM · ends at line 32: {{requestId}}'),
  one('prompts/handlebars/tone.hbs', 'handlebars', 'Cache: up to 16 of 19 tokens (84 %) on vLLM'),
  one('prompts/handlebars/welcome.hbs', 'handlebars', 'Cache: up to 288 of 301 tokens (96 %) on vLLM · while `orders` keeps its value'),
  one('prompts/jinja/order-status.j2', 'jinja', 'Cache: nothing of 280 tokens on vLLM · ends at line 1: {{ now().strftime("%Y-%m-%d %H:%M") }}', [1, '{{ now().strftime("%Y-%m-%d %H:%M") }}']),
  one('prompts/jinja/order-status-fixed.j2', 'jinja', 'Cache: up to 256 of 280 tokens (91 %) on vLLM · ends at line 21: {{ now().strftime("%Y-%m-%d %H:%M") }}'),
  one('prompts/langchain/rewrite.json', 'langchain', 'Cache: up to 272 of 280 tokens (97 %) on vLLM · while `draft` keeps its value'),
  one('prompts/langchain/translate.yaml', 'langchain', 'Cache: up to 272 of 275 tokens (99 %) on vLLM · ends at line 30: {{ answer }}'),
  one('prompts/liquid/receipt.liquid', 'liquid', 'Cache: nothing of 276 tokens on vLLM · ends at line 1: {{ "now" | date: "%Y-%m-%d" }}', [1, '{{ "now" | date: "%Y-%m-%d" }}']),
  one('prompts/mustache/newsletter.mustache', 'mustache', 'Cache: up to 272 of 282 tokens (96 %) on vLLM · while `offers`, `price` and 1 more keep their values'),
  one('prompts/nunjucks/digest.njk', 'nunjucks', 'Cache: nothing of 275 tokens on vLLM · ends at line 1: {{ request_id }}', [1, '{{ request_id }}']),
  one('prompts/poml/review.poml', 'poml', 'Cache: up to 256 of 269 tokens (95 %) on vLLM · 2 variants · ends at line 22: {{answer}}'),
  one('prompts/promptfoo/answer.txt', 'promptfoo', 'Cache: up to 256 of 271 tokens (94 %) on vLLM · ends at line 21: {{ current_time }}'),
  one('prompts/promptfoo/promptfooconfig.yaml', 'promptfoo', 'Cache: nothing of 271 tokens on vLLM · ends at line 7: {{ current_time }}', [7, '{{ current_time }}']),
  one('prompts/requests/anthropic-marked.json', 'request-json', '1,056 tokens, all static · up to 1,042 cached on Anthropic'),
  one('prompts/requests/anthropic-unmarked.json', 'request-json', '1,056 tokens, all static, but nothing is cached on Anthropic without a cache_control marker: add one (up to 1,042 tokens)'),
  one('prompts/requests/gemini.json', 'request-json', '280 tokens, all static, but under the minimum of 2,048 on Gemini: not cached'),
  { file: 'prompts/requests/nightly.jsonl', format: 'request-jsonl', lens: [280, 276, 274, 276].map((tokens) => `${String(tokens)} tokens, all static`), breaks: [] },
  one('prompts/requests/openai-chat.json', 'request-json', '1,313 tokens, all static'),
  one('prompts/requests/openai-responses.json', 'request-json', '1,056 tokens, all static'),
  one('prompts/semantic-kernel/Summary/skprompt.txt', 'semantic-kernel', 'Cache: nothing of 277 tokens on vLLM · ends at line 1: {{time.now}}', [1, '{{time.now}}']),
  one('prompts/semantic-kernel/intent.yaml', 'semantic-kernel', 'Cache: up to 272 of 282 tokens (96 %) on vLLM · ends at line 28: {{request}}'),
  one('prompts/text/greeting.txt', 'text', '279 tokens, all static'),
];

/** Files of the workspace that are no prompts. */
export const otherFiles: readonly string[] = ['.vscode/settings.json', 'README.md', 'prompts/semantic-kernel/Summary/config.json'];

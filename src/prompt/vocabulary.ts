/**
 * What names of variables and calls tell about how often their value changes. Names are compared as words
 * (`currentDate`, `CURRENT_DATE` and `current-date` are one), so `update` holds no date and `candidate` neither.
 */
import type { Volatility } from './prompt';

/** What a name or call tells. `certain` only for calls that the grammar makes sure of. */
export interface NameEvidence {
  readonly volatility: Volatility;
  readonly strength: 'certain' | 'strong' | 'weak';
  readonly reason: string;
}

/** A name as lower-case words joined by `_`. */
export function snake(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_+|_+$/g, '');
}

type Rule = readonly [pattern: RegExp, volatility: Volatility, strength: 'strong' | 'weak', reason: string];

const actors = 'user|customer|client|member|participant|employee|caller|visitor|patient|student|guest|player|owner|author|sender|recipient|human|account|person|candidate|buyer|seller|traveler|traveller|applicant|contact';
const present = 'current|curr|cur|todays?|now|present|system|server|local|utc|this|actual|the|wall';
const clockWords = 'date_time|datetime|date|time|day|weekday|month|year|hour|minute|second|timestamp|epoch|clock|moment|week';

/** Read in order; the first match decides. Patterns see the last segment of the path as words. */
const rules: readonly Rule[] = [
  // What looks like a clock, an id or a text but is a setting or a property of data.
  [/(?:^|_)(?:format|formats|template|templates|schema|schemas|instructions|enabled|disabled|mode|style|type|types|limit|limits|window|length|size|budget_max|threshold|level|levels|policy|policies|rules|guidelines|definition|definitions|separator|delimiter|prefix|suffix|tag|tags|label|labels|title|header|heading|placeholder|criteria|rubric)$/, 'deploy', 'weak', 'names a setting'],
  [/^(?:is|has|have|should|can|enable|disable|enabled|use|uses|show|hide|include|includes|exclude|add|allow|support|supports|with|without|force|preserve|skip|strip|keep|no)_/, 'unknown', 'weak', 'names a flag or limit'],
  [/^(?:max|min|maximum|minimum|default|num|number_of|n)_/, 'deploy', 'weak', 'names a limit'],
  [/(?:knowledge|training|data)_?cut_?off|^cut_?off(?:_date)?$|(?:^|_)training_date$/, 'deploy', 'weak', 'names a property of the model'],
  [/^(?:time_?zone|tz|utc_offset|time_?zone_(?:name|offset|id))$/, 'session', 'weak', 'names a time zone'],
  // Clocks.
  [new RegExp(`^(?:${present})_(?:${clockWords})(?:_(?:str|string|text|utc|local|iso|human|formatted|now|s|ms|stamp|(?:and_)?(?:time|date|day|weekday)|value|of_day|zulu))*$`), 'minute', 'strong', 'names the clock'],
  [new RegExp(`^(?:${clockWords})_(?:now|today|current|utc|str|string|text|stamp|iso|of_day|of_week|local)$`), 'minute', 'strong', 'names the clock'],
  [/^(?:now|utc_?now|today|todays|date_?now|time_?now|now_(?:utc|iso|str|string|local|date|time)|today_(?:str|string|iso|date)|(?:iso|unix|utc|epoch|local)_?(?:time|date|datetime|timestamp|now|seconds|ms)|right_now|as_of_now)$/, 'minute', 'strong', 'names the clock'],
  [/^(?:date_?time|timestamp|time_?stamp|date_and_time|date_time_utc|weekday|day_of_week|day_?name|clock|currentdate|currenttime|currentdatetime|todaysdate|current_dt|current_ts)$/, 'minute', 'strong', 'names the clock'],
  [/^(?:date|time)$/, 'minute', 'strong', 'names the clock'],
  [/^(?:year|month|day|hour|minute)$/, 'day', 'weak', 'may name the clock'],
  // Random values and ids of one request.
  [/(?:^|_)(?:nonce|salt|uuid|guid|ulid|nanoid|random|randomness|rand)(?:_|$)/, 'request', 'strong', 'names a value that is new each time'],
  [/(?:^|_)(?:request|trace|span|correlation|message|msg|run|call|invocation|execution|transaction|completion|generation|turn|sub_?agent|attempt|event|tool_call|query|job)_?ids?$/, 'request', 'strong', 'names an id of one request'],
  [/^(?:random_)?seed$/, 'request', 'weak', 'names a seed'],
  [/(?:^|_)(?:session|conversation|thread|chat|user|tenant|org|organi[sz]ation|account|customer|workspace|project|team|member|client|device|agent|channel|guild|room|visitor|participant|employee|profile|login)_?(?:id|uid|uuid|key|number)s?$/, 'session', 'strong', 'names an id of a session or user'],
  // Counters and budgets.
  [
    /(?:^|_)(?:tokens?|turns?|attempts?|steps?|iterations?|budget|time|calls?|messages?|retries|credits?|quota|context)_(?:left|remaining|used|usage|so_far|consumed|spent)$|^remaining_(?:tokens?|turns?|attempts?|steps?|iterations?|budget|time|calls?|messages?|retries|credits?|quota|context)$|^(?:turn|iteration|loop|step|attempt|round|retry)_?(?:number|num|count|counter|index|no)$|^(?:current_)?(?:turn|iteration)$|^(?:cost|spent|elapsed|usage)_(?:so_far|time|percent|pct)$|^(?:loop_count|percent_full|(?:context|memory|token)_(?:usage|percent(?:age)?|pct)(?:_used|_full)?)$/,
    'request',
    'strong',
    'names a counter',
  ],
  // History and memory.
  [/^(?:(?:chat|conversation|message|dialog(?:ue)?|full|recent|past|previous|prior|session|thread|formatted)_)?history(?:_(?:str|string|text|messages?))?$|^(?:chathistory|messages|chat_messages|conversation_messages|previous_messages|prior_messages|past_messages|recent_messages|message_history)$|(?:^|_)scratch_?pad$/, 'request', 'strong', 'names the conversation so far'],
  [/^(?:(?:user|long_term|short_term|working|episodic|relevant|recalled|retrieved|agent|conversation|chat|session|core|saved)_)?memor(?:y|ies)(?:_(?:context|block|text|str|string))?$|^(?:conversation|chat|session|history|rolling|running)_summary$|^(?:summary|todos?|todo_list|task_list)$/, 'request', 'strong', 'names a memory that is rewritten'],
  // What the user asks and what was retrieved for it.
  [/^(?:(?:user|users|original|current|latest|last|new|raw|customer|client|human|search|incoming|rewritten|standalone|follow_?up|next|final|input|my)_)?(?:question|query|queries|questions|input|inputs|prompt|message|request|text|utterance|instruction_input)(?:_(?:text|str|string|content|body|message))?$|^(?:userinput|userquery|usermessage|userprompt|user_says|user_said|user_content|user_turn|input_(?:data|document|documents|context)|source_text|text_input|arguments|selected_text)$/, 'request', 'strong', 'names what the user asks'],
  [/^(?:(?:retrieved|relevant|search|source|reference|supporting|similar|related|context|ranked|top|rag|grounding|web|vector|knowledge|fetched|matched)_)+(?:documents?|docs|chunks?|passages?|results?|context|contexts|snippets?|sources|articles|nodes|text|texts|content|data|facts|information|info|pages|hits|records|items|examples)$|^(?:rag|retrieved|retrieval)_\w+$|^(?:documents?|docs|chunks|passages|snippets|contexts?|context_(?:str|string|text|docs|documents|chunks|block|data)|documentation|document_(?:text|content|chunks|context)|search_results?|query_results?|results_context|facts_retrieved)$/, 'request', 'strong', 'names what was retrieved for the request'],
  [/^(?:selected|similar|retrieved|relevant|top_k|dynamic|nearest|matching|matched)_(?:few_?shots?|shots|examples|demos|demonstrations|samples)$/, 'request', 'strong', 'names examples chosen for the request'],
  // Workspace state that moves while the user works.
  [/^(?:git_(?:status|diff|log|state|info|changes)|(?:staged_|unstaged_|working_|current_)?diff|(?:open|recent|changed|modified|visible)_(?:files|tabs|editors|buffers)|cursor(?:_(?:position|line|offset|context))?|selection|selected_code|editor_(?:state|context|selection)|diagnostics|lint_errors|terminal_(?:output|context|state)|clipboard|visible_text|recent_(?:commits|changes|edits))$/, 'request', 'strong', 'names workspace state'],
  [/^(?:cwd|pwd|(?:current_)?(?:working_|work_)(?:directory|dir)|current_(?:directory|dir|folder|path)|workspace(?:_(?:root|path|folder|name|folders|info))?|project_(?:root|path|dir|directory|structure|tree)|repo_(?:root|path|name|structure|map)|home(?:_dir(?:ectory)?)?|git_(?:branch|commit|root|repo)|(?:current_)?branch(?:_name)?|commit(?:_(?:hash|sha|id))?|env|environment(?:_(?:info|details|context))?|system_info(?:rmation)?|os|os_(?:name|version|info)|operating_system|platform|shell|default_shell|arch|hostname|host_name|machine|kernel|file_(?:tree|list|listing|structure)|files|directory_(?:tree|listing|structure)|folder_structure|tree|open_file|active_file|current_file)$/, 'session', 'weak', 'names the workspace or machine'],
  // Who the user is, where and in which language.
  [new RegExp(`(?:^|_)(?:${actors})_?(?:name|first_?name|last_?name|full_?name|email|e_mail|phone|info(?:rmation)?|profile|details|data|age|role|preferences|prefs|settings|bio|context|tier|plan|location|language|locale|country|city|timezone|group|groups|department|type|gender|address)$`), 'session', 'weak', 'names the user'],
  [/^(?:first|last|full|display|nick|given|family|middle|sur|user|login)_?name$|^(?:username|surname|email|e_mail|email_address|phone|phone_number|birth_?date|birthday|date_of_birth|dob|age|gender|profile|preferences|persona_user|participant_data|membership|whoami)$/, 'session', 'weak', 'names the user'],
  [new RegExp(`^(?:${actors.replace('|candidate', '').replace('|contact', '').replace('|human', '')})$`), 'session', 'weak', 'names the user'],
  [/^(?:locale|language|lang|user_lang|(?:preferred|target|output|response|reply|native)_lang(?:uage)?|country|country_code|city|region|state|location|place|lat|lon|lng|latitude|longitude|geo|geolocation|weather|currency|units?)$/, 'session', 'weak', 'names place or language'],
  // Lists that are fixed while the program is not changed.
  [/^(?:(?:available|allowed|enabled|all|list_of|selected|active|builtin|built_in|mcp|function|functions|agent|llm|openai|namespace)_)*(?:tools?|functions?|toolset|tool_?kit)(?:_(?:names?|descriptions?|desc|list|specs?|json|schemas?|info|prompt|definitions?|section|docs|strings?|text|instructions|call_format|use))*$/, 'deploy', 'weak', 'names the tool list'],
  [/^(?:few_?shots?|few_shot_examples|fewshotexamples|examples?|shots|demos|demonstrations|example_\w+|samples?)$/, 'deploy', 'weak', 'names fixed examples'],
  [/^(?:app|application|product|company|brand|organi[sz]ation|org|business|site|website|store|bot|assistant|agent|ai|chatbot|model|service|project|library|framework|team|domain|character|tool|class|function|plugin|server)_?(?:name|title|description|version|family|variant|display_name|identity|persona|url)?$|^(?:version|model_id|llm|system_prompt|system_message|base_prompt|instructions?|persona|tone|rules|guidelines|policy|policies|output_format|format_instructions|response_format|schema|json_schema|categories|labels|classes|choices|options|bos_token|eos_token|pad_token|unk_token|sep|stop|add_generation_prompt|continue_final_message|enable_thinking|reasoning_effort|temperature)$/, 'deploy', 'weak', 'names a setting of the application'],
  // Texts that usually belong to one request, by words that also mean fixed things.
  [
    /^(?:(?:user|current|input|last|latest|new|raw|original|source|target|student|model|assistant|llm|customer|submitted|previous|generated|actual|the|this|full|article|email|issue|pr|commit|page|web|file|code|transcript|meeting|news|blog|review|test|bug|error|search|tool|command|expected)_)?(?:article|transcript|transcription|email|letter|reviews?|ticket|issue|post|comments?|tweet|code|snippet|paragraph|sentence|answers?|responses?|outputs?|results?|content|contents|topic|subject|goal|task|objective|claim|passage|chunk|url|link|file|image|observations?|thoughts?|errors?|feedback|conversation|dialog|dialogue|data|payload|body|statement|words?|resume|cv|bug|logs?|trace|stack_trace|sql|records?|events?|messages?|texts?|query|question|input|prompt|document)$|^job_description$/,
    'request',
    'weak',
    'often names content of the request',
  ],
];

/** Roots whose every property has one class: `customer.age`, `env.shell`, `config.x`. */
const roots: readonly Rule[] = [
  [new RegExp(`^(?:${actors}|profile|me|whoami|session|participant_data|current_user|auth|account)$`), 'session', 'weak', 'belongs to the user'],
  [/^(?:env|environ|environment|os|system|sys|workspace|platform|machine|host|git|repo|vscode|editor)$/, 'session', 'weak', 'belongs to the workspace or machine'],
  [/^(?:config|conf|cfg|settings|options|params|app|application|constants|const|defaults|brand|company|tool_names|tools|model|prompts|self|i18n|strings|locales|theme|features|flags)$/, 'deploy', 'weak', 'belongs to the settings'],
  [/^(?:request|req|message|msg|event|payload|body|query|input|inputs|state|turn|job|task|doc|document|chunk|result|retrieval|retriever)$/, 'request', 'weak', 'belongs to the request'],
];

const dayOnly = /(?:^|_)(?:date|today|todays|day|weekday|month|year|week|dayname|currentdate|todaysdate)(?:_|$)/;
const withTime = /(?:^|_)(?:time|now|timestamp|stamp|datetime|clock|hour|minute|second|epoch|unix|currenttime|currentdatetime|utcnow|ms|seconds|dt|ts|moment)(?:_|$)/;

/** What the words of a name tell, or null when nothing. `path` is dotted; only its last segment and its root are read. */
export function judgeName(path: string): NameEvidence | null {
  const known = judged.get(path);
  if (known !== undefined) return known;
  const evidence = judgeFresh(path);
  if (judged.size > 5000) judged.clear();
  judged.set(path, evidence);
  return evidence;
}

/** Names come again at every place and keystroke. */
const judged = new Map<string, NameEvidence | null>();

function judgeFresh(path: string): NameEvidence | null {
  const segments = path
    .replace(/\(\)/g, '')
    .split(/[./]/)
    .map(snake)
    .filter((s) => s !== '' && !/^\d+$/.test(s));
  const last = segments.at(-1);
  const root = segments[0];
  if (last === undefined || root === undefined) return null;
  const own = segments.length === 1 || !datum.test(last) || (clockDatum.test(last) && clockRoots.test(root)) ? firstMatch(rules, last) : null;
  const byRoot = segments.length > 1 ? (firstMatch(roots, root) ?? firstMatch(rules, root)) : null;
  const ownWins = own !== null && own[1] !== 'unknown' && (byRoot === null || own[2] === 'strong' || own[1] === 'session');
  const found = ownWins ? own : (byRoot ?? own);
  if (found === null || found[1] === 'unknown') return null;
  const [, volatility, strength, reason] = found;
  if (reason !== clockReason) return { volatility, strength, reason };
  const name = found === own ? last : `${root}_${last}`;
  const day = found === own ? dayOnly.test(name) && !withTime.test(name) : dayOnly.test(last) || (dayOnly.test(root) && !withTime.test(root));
  return { volatility: day ? 'day' : 'minute', strength, reason };
}

const clockReason = 'names the clock';
/** `order.date`, `item.time`, `doc.text`: a property of data, decided by what it belongs to. */
const datum =
  /^(?:date|time|datetime|date_time|timestamp|year|month|day|hour|minute|weekday|name|title|content|text|id|type|message|context|summary|description|data|role|documents?|memory|history)$/;
const clockDatum = /^(?:date|time|datetime|date_time|timestamp)$/;
const clockRoots = /^(?:system|sys|env|environment|context|ctx|globals?|app|runtime|clock|now|today|current|meta|server|date|time|datetime)$/;

function firstMatch(list: readonly Rule[], name: string): Rule | null {
  return list.find(([pattern]) => pattern.test(name)) ?? null;
}

const minuteCalls =
  /(?:^|\.)(?:(?:datetime|date|DateTime|DateTimeOffset|timezone|pendulum|arrow|Timestamp|Time|Clock|Instant|LocalDateTime|ZonedDateTime|Carbon|moment|dayjs|luxon|Temporal\.Now|Date)\.(?:now|utcnow|utc_now|UtcNow|Now|plainDateTimeISO|zonedDateTimeISO|instant|fromtimestamp)|(?:time)\.(?:time|time_ns|ctime|localtime|gmtime|asctime|strftime|monotonic|perf_counter)|performance\.now|process\.hrtime|strftime_now|utcnow|now_utc|get_?(?:current_?)?(?:date_?)?time|getTime|current_?(?:date_?)?time|(?:get_?)?current_?timestamp|timestamp|time_ns)$/i;
const dayCalls = /(?:^|\.)(?:date\.today|pendulum\.today|Temporal\.Now\.plainDateISO|today|(?:get_?)?(?:current_?|todays_?)date|get_?today(?:s_?date)?|LocalDate\.now)$/i;
const randomCalls =
  /(?:^|\.)(?:uuid|uuid[1-7]|uuid\.v[1-7]|v4|randomUUID|random_uuid|nanoid|ulid|cuid2?|createId|guid|new_?guid|Guid\.NewGuid|Math\.random|urandom|randomBytes|getRandomValues|randint|randrange|shuffle|shuffled|lipsum|random|rand|token_hex|token_urlsafe|token_bytes|gensym|(?:np\.|numpy\.)?random\.\w+|secrets\.\w+|faker\.\w+(?:\.\w+)*)$/;
const timePlugin = /^(?:time|time_?plugin|time_?skill|core_?time|clock)[.-](\w+)$/i;
/** True for Semantic Kernel's clock as Handlebars calls it: `TimePlugin-Now`. */
export function isTimePlugin(word: string): boolean {
  return word.includes('-') && timePlugin.test(word);
}

/** Calls that give the same for the same arguments; these count on their own. */
const calendarCalls = /^(?:Date\.(?:UTC|parse)|(?:datetime\.)?(?:datetime|date)\.(?:strptime|fromisoformat|fromisocalendar|fromordinal|fromtimestamp|utcfromtimestamp|combine)|time\.(?:strptime|mktime)|(?:calendar|pendulum|arrow)\.(?:timegm|datetime|parse|get)|Temporal\.(?!Now)\w+\.from|(?:Local)?Date(?:Time)?\.(?:of|fromISO|fromMillis|fromSeconds)|(?:datetime\.)?timedelta)$/;

/** True when a call with arguments gives a fixed point in time: `Date.UTC(2020, 1, 1)`, `datetime(2020, 1, 1)`. */
export function isCalendarCall(path: string, strings: readonly string[]): boolean {
  const bare = path.replace(/\(\)(?:\..*)?$/, '');
  return calendarCalls.test(bare) || (strings.length === 0 && /^(?:datetime|date|time|datetime\.(?:datetime|date|time))$/.test(bare));
}

const constantCalls =
  /^(?:namespace|range|dict|list|tuple|set|len|int|str|float|bool|cycler|joiner|super|self\.\w+|loop\.\w+|caller|zip|enumerate|sorted|reversed|min|max|sum|abs|round|isinstance|type|repr|String|Number|Boolean|Object\.\w+|Array\.\w+|JSON\.stringify|json\.dumps|dedent|textwrap\.\w+|gettext|ngettext|_|__|t|i18n|translate|cycle|increment|decrement|trans|json|upper|lower|trim|join|eq|ne|lt|gt|and|or|not|concat|lookup|length|default|indent|array|ifThen|equals|_\.role|caller\(\))$/;
const retrievalCalls = /(?:^|[.-])(?:recall|retrieve\w*|search\w*|similarity_search|get_relevant_documents|extract_?chat_?history|summari[sz]e\w*|save|ask|query)$/i;

/** How a format string of dates reads: by the day, by the minute, or null when it is no date format. */
export function formatClass(format: string): 'day' | 'minute' | null {
  if (format.includes('%')) {
    if (/%[-_#]?[HIklMSfpPXcTRrsLNQ]/.test(format)) return 'minute';
    return /%[-_#]?[YyGmBbhdejaAuwUWVDFxC]/.test(format) ? 'day' : null;
  }
  const bare = format.replace(/'[^']*'|\[[^\]]*\]/g, '').trim();
  if (/^[A-Za-z](?:[^A-Za-z]+[A-Za-z])*$/.test(bare) && bare.length > 1) return /[HGhgisPuU]/.test(bare) ? 'minute' : /[YymndjFMlDNSwz]/.test(bare) ? 'day' : null;
  if (!/^[yYMDdEeQwHhKkmsSaAzZXTLlo\s\-/:.,]+$/.test(bare) || !/y{2,}|Y{2,}|M{2,}|D{2,}|d{2,}|H{1,2}|h{1,2}|mm|ss|L+T?S?|E{2,}/.test(bare)) return null;
  return /[Hhs]|mm|LT/.test(bare) ? 'minute' : 'day';
}

/**
 * What a call tells. `formats` are its constant string arguments: a date-only format makes a clock change by the day.
 * `silent`: a call that adds nothing to its arguments. Null: unknown function.
 */
export function judgeCall(path: string, formats: readonly string[]): NameEvidence | 'silent' | null {
  const bare = path.replace(/\(\)(?:\..*)?$/, '');
  if (constantCalls.test(path) || constantCalls.test(bare)) return 'silent';
  const plugin = timePlugin.exec(bare);
  if (plugin !== null && !/^time\.(?:\w*time|time_ns|monotonic|perf_counter)$/.test(bare)) return timePluginCall(plugin[1]!);
  if (randomCalls.test(bare)) return { volatility: 'request', strength: 'certain', reason: 'gives a new value at each call' };
  if (dayCalls.test(bare) && !/datetime\.today$/i.test(bare) && !formats.some((f) => formatClass(f) === 'minute')) return { volatility: 'day', strength: 'certain', reason: 'reads the clock' };
  const clock = minuteCalls.test(bare) || dayCalls.test(bare) || /^(?:now|utcnow|Date|dayjs|moment|DateTime)$/.test(bare);
  if (clock) return { volatility: clockByFormat('minute', formats), strength: 'certain', reason: 'reads the clock' };
  if (retrievalCalls.test(bare)) return { volatility: 'request', strength: 'certain', reason: 'is called with the request' };
  if (/(?:^|\.)(?:getcwd|cwd|gethostname|getuser|platform\.\w+|homedir|hostname|getlogin)$/.test(bare)) return { volatility: 'session', strength: 'certain', reason: 'reads the machine' };
  if (/(?:^|\.)(?:getenv|environ\.get|env)$/.test(bare)) return { volatility: 'deploy', strength: 'certain', reason: 'reads the environment' };
  if (/^(?:subprocess|child_process)\b|(?:^|\.)(?:execSync|check_output|spawnSync)$/.test(bare)) return { volatility: 'request', strength: 'certain', reason: 'runs a command' };
  return null;
}

function timePluginCall(method: string): NameEvidence {
  if (/zone/i.test(method)) return { volatility: 'session', strength: 'certain', reason: 'reads the time zone' };
  const minute = /now|^time$|hour|minute|second/i.test(method);
  return { volatility: minute ? 'minute' : 'day', strength: 'certain', reason: 'reads the clock' };
}

/** The class of a clock under its formats: date-only formats give `day`, any format with a time `minute`, none leaves `fallback`. */
export function clockByFormat(fallback: 'day' | 'minute', formats: readonly string[]): 'day' | 'minute' {
  const classes = formats.map(formatClass).filter((c) => c !== null);
  if (classes.includes('minute')) return 'minute';
  return classes.includes('day') ? 'day' : fallback;
}

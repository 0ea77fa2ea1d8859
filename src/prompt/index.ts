/** Front door of the prompt part: what editor and terminal use. Loaded lazily. */
export { findHiddenClock, findWrittenDate, hiddenDateWords, renderChatTemplate, type HiddenClock, type HiddenDate } from './chatTemplate';
export { findingCodes, type FindingCode, type Severity } from './findingCodes';
export { analyseFile, byteOffsets, decode, lintFile, lintResult, promptFileOf, ruleForFile, ruleIds, ruleNamed, type AnalysedFile, type AnalysedPrompt, type Finding, type LintOptions, type LintResult } from './lint';
export { applyEdits, ignoreFixes, markerFixes, placeFixes, sortToolsFix, type Fix, type FixContext, type TextEdit } from './fixes';
export { maximumLength, parsePromptFile, prepare, sniffTemplate, useCodeReader, type ParseOptions } from './parse';
export { analysePrefix, lossOf, placeSentence, scopesSentence, textsToCount, type ChangingPlace, type InputPrice, type Loss, type PrefixReport } from './prefix';
export type { ChatPrompt, FormatId, Piece, Prompt, PromptFile, Role, Scope, Volatility } from './prompt';
export { compareRenders, firstDifference, renderPrompt, type RenderComparison, type RenderedPrompt, type RenderInputs } from './renderDiff';
export { blocksIn, compareRequests, editCost, placeOfPath, requestsIn } from './requestDiff';
export { ageOf, blockOf, loadRules, reusable, ruleFor, type CacheRule, type RuleBook, type RuleTarget } from './rules';
export { placeholdersIn, renderFile, renderForProbe, sampleInputs } from './samples';
export { bytesCounter, countAtEndpoint, countedAtEndpoint, remembering, tokenEndpointOf, tokenEndpoints, type EndpointCounter, type SentTokens, type TokenCounter, type TokenCountSource } from './tokens';
export { isVolatile, unroll, type VolatilityOptions } from './volatility';

/** Every experiment by its name; a new one is a file and a line here. */
export { sweep, type SweepOptions, type SweepResult, type SweepStep } from './sweep';
export { rate, type RateOptions, type RateResult, type RateStep } from './rate';
export type { ArrivalKind } from './arrivals';
export { checkProof, prefixProof, type PrefixResult, type PrefixRow, type ProofOptions, type ProviderSays } from './prefix';
export { type PlannedProof, type PrefixPrediction, type ProofSubject, type ProofTarget, type ProofWanted } from './prefixPrediction';
export { batching, type BatchingOptions, type BatchingResult, type BatchingVerdict } from './batching';
export { interference, type InterferenceOptions, type InterferenceResult, type InterferenceVerdict } from './interference';
export { fairness, type FairnessOptions, type FairnessResult, type FairnessVerdict, type TenantLoad } from './fairness';
export { overload, type OverloadOptions, type OverloadResult, type OverloadVerdict } from './overload';
export { encoder, type EncoderInput, type EncoderOptions, type EncoderResult, type EncoderVerdict } from './encoder';

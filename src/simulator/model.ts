/**
 * What a model and a GPU are, in physical numbers. Everything the engine's timing depends on is here, so a latency can be computed on paper.
 */

/** A decoder-only transformer as its published `config.json` describes it. */
export interface ModelSpec {
  readonly name: string;
  /** All parameters, and those a token touches (fewer in a mixture of experts). */
  readonly parameters: number;
  readonly activeParameters: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Longest prompt plus answer, in tokens. */
  readonly maxContext: number;
  /** Mixture of experts: how many there are and how many each token uses. Absent in a dense model. */
  readonly experts?: { readonly total: number; readonly used: number };
  readonly source: string;
}

/** One accelerator: capacity and the two limits of the roofline (dense 16-bit, no sparsity). */
export interface GpuSpec {
  readonly name: string;
  /** Bytes. */
  readonly memory: number;
  /** Bytes per second. */
  readonly bandwidth: number;
  /** Dense bf16 or fp16 operations per second. */
  readonly flops: number;
  readonly source: string;
}

const G = 1e9;
const T = 1e12;

const dense = (name: string, parameters: number, layers: number, heads: number, kvHeads: number, headDim: number, maxContext: number, source: string): ModelSpec => ({
  name,
  parameters,
  activeParameters: parameters,
  layers,
  heads,
  kvHeads,
  headDim,
  maxContext,
  source,
});

/** Public models by the name `--model` takes. Sources: each model's card and `config.json` on the Hugging Face hub. */
export const models: readonly ModelSpec[] = [
  dense('llama-3.1-8b', 8.03 * G, 32, 32, 8, 128, 131_072, 'meta-llama/Llama-3.1-8B config.json'),
  dense('llama-3.1-70b', 70.6 * G, 80, 64, 8, 128, 131_072, 'meta-llama/Llama-3.1-70B config.json'),
  dense('llama-3.2-1b', 1.24 * G, 16, 32, 8, 64, 131_072, 'meta-llama/Llama-3.2-1B config.json'),
  dense('mistral-7b', 7.25 * G, 32, 32, 8, 128, 32_768, 'mistralai/Mistral-7B-v0.3 config.json'),
  dense('qwen2.5-7b', 7.62 * G, 28, 28, 4, 128, 32_768, 'Qwen/Qwen2.5-7B config.json'),
  dense('qwen2.5-32b', 32.8 * G, 64, 40, 8, 128, 32_768, 'Qwen/Qwen2.5-32B config.json'),
  dense('qwen3-8b', 8.19 * G, 36, 32, 8, 128, 40_960, 'Qwen/Qwen3-8B config.json'),
  {
    ...dense('qwen3-30b-a3b', 30.5 * G, 48, 32, 4, 128, 40_960, 'Qwen/Qwen3-30B-A3B config.json'),
    activeParameters: 3.3 * G,
    experts: { total: 128, used: 8 },
  },
];

/** Accelerators by the name `--gpu` takes. */
export const gpus: readonly GpuSpec[] = [
  { name: 'h200', memory: 141 * G, bandwidth: 4.8 * T, flops: 989 * T, source: 'NVIDIA H200 SXM datasheet (1,979 TFLOPS with sparsity)' },
  { name: 'h100', memory: 80 * G, bandwidth: 3.35 * T, flops: 989 * T, source: 'NVIDIA H100 SXM datasheet (1,979 TFLOPS with sparsity)' },
  { name: 'b200', memory: 180 * G, bandwidth: 8 * T, flops: 2250 * T, source: 'NVIDIA HGX B200 datasheet, per GPU (4,500 TFLOPS with sparsity)' },
  { name: 'a100', memory: 80 * G, bandwidth: 2.039 * T, flops: 312 * T, source: 'NVIDIA A100 80GB SXM datasheet' },
  { name: 'l40s', memory: 48 * G, bandwidth: 0.864 * T, flops: 362 * T, source: 'NVIDIA L40S datasheet (733 TFLOPS with sparsity)' },
  { name: 'l4', memory: 24 * G, bandwidth: 0.3 * T, flops: 121 * T, source: 'NVIDIA L4 datasheet (242 TFLOPS with sparsity)' },
  { name: 'rtx4090', memory: 24 * G, bandwidth: 1.008 * T, flops: 165 * T, source: 'NVIDIA Ada architecture whitepaper, FP16 with FP32 accumulation' },
  { name: 'rtx3090', memory: 24 * G, bandwidth: 0.936 * T, flops: 71 * T, source: 'NVIDIA Ampere GA102 whitepaper, FP16 with FP32 accumulation' },
  { name: 'mi300x', memory: 192 * G, bandwidth: 5.3 * T, flops: 1307 * T, source: 'AMD Instinct MI300X datasheet' },
];

/** A model on `tensorParallel` GPUs, with the choices that set its speed. */
export interface Hardware {
  readonly model: ModelSpec;
  readonly gpu: GpuSpec;
  readonly tensorParallel: number;
  readonly weightBits: number;
  readonly kvBits: number;
  /** Share of the peak bandwidth and of the peak FLOP/s that is reached, each in (0, 1]. */
  readonly efficiency: { readonly bandwidth: number; readonly compute: number };
  /** Cost added to every iteration (scheduling, kernel launches, all-reduce), ms. */
  readonly stepOverhead: number;
}

/** What a deployment is made of, by preset names; everything but the names has a usual value. */
export interface HardwareChoice {
  readonly model?: string;
  readonly gpu?: string;
  readonly tensorParallel?: number;
  readonly weightBits?: number;
  readonly kvBits?: number;
  readonly efficiency?: { readonly bandwidth: number; readonly compute: number };
  readonly stepOverhead?: number;
}

/**
 * Looks up the presets. The demo's defaults: an 8B model in 16 bits on one H200, full bandwidth, half of the FLOP/s.
 * Throws when a preset does not exist or the weights do not fit; the message names the flag.
 */
export function hardware(choice: HardwareChoice = {}): Hardware {
  const chosen: Hardware = {
    model: named(models, choice.model ?? 'llama-3.1-8b', '--model'),
    gpu: named(gpus, choice.gpu ?? 'h200', '--gpu'),
    tensorParallel: choice.tensorParallel ?? 1,
    weightBits: choice.weightBits ?? 16,
    kvBits: choice.kvBits ?? 16,
    efficiency: choice.efficiency ?? { bandwidth: 1, compute: 0.5 },
    stepOverhead: choice.stepOverhead ?? 0,
  };
  const room = chosen.gpu.memory * chosen.tensorParallel * memoryShare;
  if (weightBytes(chosen) >= room) {
    const needed = Math.ceil(weightBytes(chosen) / (chosen.gpu.memory * memoryShare));
    throw new Error(`${chosen.model.name} in ${chosen.weightBits} bits does not fit on ${chosen.tensorParallel} × ${chosen.gpu.name}: use --tp ${needed + 1}, --weight-bits 8 or a larger --gpu.`);
  }
  return chosen;
}

function named<T extends { readonly name: string }>(list: readonly T[], name: string, flag: string): T {
  const found = list.find((entry) => entry.name === name.toLowerCase());
  if (!found) throw new Error(`${flag} ${name} is not known. Known: ${list.map((entry) => entry.name).join(', ')}.`);
  return found;
}

/** Share of the memory a server takes for weights and KV cache (vLLM's `--gpu-memory-utilization` default). */
export const memoryShare = 0.9;

/** Bytes of all weights. */
export function weightBytes(hardware: Hardware): number {
  return (hardware.model.parameters * hardware.weightBits) / 8;
}

/** Bytes of keys and values one token keeps: 2 × layers × KV heads × head dim × bytes per value. */
export function kvBytesPerToken(hardware: Hardware): number {
  const { layers, kvHeads, headDim } = hardware.model;
  return (2 * layers * kvHeads * headDim * hardware.kvBits) / 8;
}

/** Tokens of KV cache that fit beside the weights. */
export function kvCapacity(hardware: Hardware): number {
  const free = hardware.gpu.memory * hardware.tensorParallel * memoryShare - weightBytes(hardware);
  return Math.floor(free / kvBytesPerToken(hardware));
}

/** Bytes per second at which a starting replica reads its weights from disk (a PCIe 4 NVMe drive reads about 3 GB/s in practice). */
const diskBandwidth = 3 * G;

/** Time to load the weights when a replica starts, ms. */
export function loadTime(hardware: Hardware): number {
  return (weightBytes(hardware) / diskBandwidth) * 1000;
}

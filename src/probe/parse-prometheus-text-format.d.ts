declare module 'parse-prometheus-text-format' {
  /** Parses the Prometheus text format; values stay strings. */
  export default function parse(text: string): { name: string; type: string; metrics: { value?: string; labels?: Record<string, string> }[] }[];
}

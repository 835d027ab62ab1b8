// Kubernetes' MicroTime: the API server refuses anything but exactly six fractional digits, and a
// JavaScript date has three. Leases and events need this format.

export function microTime(wallMs: number): string {
  const micros = Math.round((wallMs % 1000) * 1000);
  const seconds = Math.floor(wallMs / 1000) + Math.floor(micros / 1_000_000);
  const fraction = String(micros % 1_000_000).padStart(6, '0');
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
}

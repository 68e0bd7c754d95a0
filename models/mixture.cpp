#include "mixture.h"

#include "tsdp/base/text.h"

namespace tsdp::models {
namespace {

// Values are (B, L), oldest first, NaN if missing. Samples are (B, S, K), levels (A).
const char* methods = R"(
def mean_of_known(self, sample: Tensor, dim: int) -> Tensor:
    known = sample.eq(sample)
    return sample.masked_fill(known.logical_not(), 0.0).sum(dim) / known.sum(dim)

def known_or(self, values: Tensor, other: Tensor) -> Tensor:
    return torch.where(values.eq(values), values, other)

def in_order(self, sample: Tensor) -> Tensor:
    # (S, B, K), sorted along S, missing values last. Batcher's bitonic network of comparisons of whole rows takes half as long as
    # torch.sort where S is neither small nor large.
    count, rows, places = sample.size(1), sample.size(0), sample.size(2)
    if count <= 16 or count > 128 or sample.requires_grad:
        found, whence = torch.sort(sample.transpose(1, 2), 2)
        return found.permute(2, 0, 1)
    size = 32
    while size < count:
        size = 2 * size
    found = torch.full([size, rows * places], float('inf'), dtype=sample.dtype, device=sample.device)
    found[:count] = sample.transpose(0, 1).reshape(count, rows * places)
    found.masked_fill_(found.ne(found), float('inf'))
    other = torch.empty_like(found)
    run = 1  # how long the sorted runs are
    while run < size:
        apart = run
        while apart > 0:
            these, those = found.view(size // (2 * apart), 2, apart, -1), other.view(size // (2 * apart), 2, apart, -1)
            second = these[:, 1].flip(1) if apart == run else these[:, 1]
            torch.minimum(these[:, 0], second, out=those[:, 0])
            torch.maximum(these[:, 0], second, out=those[:, 1])
            found, other = other, found
            apart = apart // 2
        run = 2 * run
    return found.reshape(size, rows, places)

def empirical(self, sample: Tensor, levels: Tensor) -> Tuple[Tensor, Tensor]:
    # Quantiles (B, A, K), interpolated between order statistics, and means (B, K); NaN of nothing.
    ordered = self.in_order(sample)
    known = sample.eq(sample)
    if bool(known.all()):
        at = levels.to(sample.dtype) * (sample.size(1) - 1)
        first = at.floor().long()
        least = ordered.index_select(0, first)
        most = ordered.index_select(0, (first + 1).clamp(max=sample.size(1) - 1))
        return (least + (at - first).reshape(-1, 1, 1) * (most - least)).transpose(0, 1), sample.mean(1)
    count = known.sum(1)
    last = (count - 1).clamp(min=0).unsqueeze(0)
    place = levels.to(sample.dtype).reshape(-1, 1, 1) * last
    below = place.floor().long()
    low = ordered.gather(0, below)
    high = ordered.gather(0, torch.minimum(below + 1, last))
    quantiles = (low + (place - below) * (high - low)).masked_fill(count.eq(0).unsqueeze(0), float('nan'))
    return quantiles.transpose(0, 1), self.mean_of_known(sample, 1)

def last_known(self, values: Tensor) -> Tensor:
    # (B, L): the place of the last known value up to each, -1 before the first
    places = torch.arange(values.size(1), device=values.device).expand_as(values)
    last, whence = torch.where(values.eq(values), places, torch.full_like(places, -1)).cummax(1)
    return last

def last_seasons(self, values: Tensor, season: int, count: int) -> Tensor:
    # (B, S, m), the last season first
    if values.size(1) < season * count:
        values = torch.constant_pad_nd(values, [season * count - values.size(1), 0], float('nan'))
    return values[:, values.size(1) - season * count:].reshape(values.size(0), count, season).flip(1)

def each_of(self, values: Tensor, length: int, every: int) -> Tensor:
    # Every so many values, `length` up to the end, beginning at each: (B * every, length)
    last = values[:, values.size(1) - length * every:].reshape(values.size(0), length, every)
    return last.transpose(1, 2).reshape(values.size(0) * every, length)

def in_turn(self, forecasts: Tensor, every: int) -> Tensor:
    # (B * every, A, their H) -> (B, A, H)
    rows, levels, horizon = forecasts.size(0) // every, forecasts.size(1), forecasts.size(2)
    steps = forecasts.reshape(rows, every, levels, horizon).permute(0, 2, 3, 1).reshape(rows, levels, horizon * every)
    return steps[:, :, :self.prediction_length]

def otherwise(self, found: Tuple[Tensor, Tensor], values: Tensor, read: int, levels: Tensor) -> Tuple[Tensor, Tensor]:
    # Where nothing is known of a step: what is known of the last `read` values, or of all, or 0.
    quantiles, mean = found
    if bool(mean.ne(mean).any()):
        recent = values[:, max(0, values.size(1) - read):]
        for part in [recent, values]:
            q, m = self.empirical(part.unsqueeze(2), levels)
            quantiles = self.known_or(quantiles, q)
            mean = self.known_or(mean, m)
        quantiles = self.known_or(quantiles, torch.zeros_like(quantiles))
        mean = self.known_or(mean, torch.zeros_like(mean))
    return quantiles, mean

def seasonal_quantiles(self, values: Tensor, season: int, count: int, moved: bool, levels: Tensor) -> Tuple[Tensor, Tensor]:
    steps = torch.arange(self.prediction_length, device=values.device) % season
    sample = self.last_seasons(values, season, count)
    if moved:
        level = self.mean_of_known(sample, 2).unsqueeze(2)
        sample = sample + (level[:, :1] - level)
    quantiles, mean = self.empirical(sample[:, :, :min(self.prediction_length, season)], levels)
    return self.otherwise((quantiles.index_select(2, steps), mean.index_select(1, steps)), values, season * count, levels)

def covariate_quantiles(self, values: Tensor, told: Tensor, season: int, count: int, levels: Tensor) -> Tuple[Tensor, Tensor]:
    # Covariates are (B, K, L + H), those of the seasons that are read (B, K, S, m), their means at each place (B, K, m).
    # Of values of which none is negative, logarithms are regressed.
    rows, length, covariates = values.size(0), values.size(1), told.size(1)
    sample = self.last_seasons(values.double(), season, count)
    known = sample.eq(sample)
    then = told[:, :, :length].double().reshape(rows * covariates, length)
    then = self.last_seasons(then, season, count).reshape(rows, covariates, count, season)
    times = known.double().sum(1)
    number = times.sum(1).clamp(min=1.0).reshape(rows, 1, 1)
    total = then.masked_fill(known.logical_not().unsqueeze(1), 0.0).sum(2)
    mean = torch.where(times.unsqueeze(1) > 0.0, total / times.clamp(min=1.0).unsqueeze(1), total.sum(2, keepdim=True) / number)
    less = torch.where(known.unsqueeze(1), then, mean.unsqueeze(2)) - mean.unsqueeze(2)
    x = less.reshape(rows, covariates, count * season)
    least = torch.where(known, sample, torch.full_like(sample, float('inf'))).amin([1, 2]).reshape(rows, 1, 1)
    most = torch.where(known, sample, torch.full_like(sample, -float('inf'))).amax([1, 2]).reshape(rows, 1, 1)
    tenth = 0.1 * sample.nan_to_num(0.0).sum([1, 2]).reshape(rows, 1, 1) / number
    signed = least < 0.0
    tenth = torch.where(tenth > 0.0, tenth, torch.ones_like(tenth))
    sample = torch.where(signed, sample, torch.log(sample + tenth))
    y = (sample - self.mean_of_known(sample, 1).unsqueeze(1)).nan_to_num(0.0).reshape(rows, count * season, 1)
    normal = x.matmul(x.transpose(1, 2)) / number
    unit = torch.sqrt(normal.diagonal(0, 1, 2)).unsqueeze(2)
    unit = torch.where(unit > 0.0, unit, torch.ones_like(unit))
    normal = normal / unit / unit.transpose(1, 2) + 0.01 * torch.eye(covariates, device=values.device).double()
    weights, info = torch.linalg_solve_ex(normal, x.matmul(y) / number / unit)
    weights = (weights / unit).transpose(1, 2)
    low, high = x.amin(2, keepdim=True), x.amax(2, keepdim=True)
    steps = torch.arange(self.prediction_length, device=values.device) % season
    now = told[:, :, length:].double() - mean.index_select(2, steps)
    now = torch.minimum(torch.maximum(now, low - 0.5 * (high - low)), high + 0.5 * (high - low))
    residual = sample - weights.matmul(x).reshape(rows, count, season)
    moved = residual.index_select(2, steps) + weights.matmul(now)
    moved = torch.where(signed, moved, torch.exp(moved) - tenth)
    first = least - 0.5 * (most - least)
    first = torch.where(signed, first, first.clamp(min=0.0))
    moved = torch.minimum(torch.maximum(moved, first), most + 0.5 * (most - least))
    return self.otherwise(self.empirical(moved.to(values.dtype), levels), values, season * count, levels)

def seasonal_naive_bands(self, values: Tensor, season: int, count: int, levels: Tensor) -> Tuple[Tensor, Tensor]:
    horizon = self.prediction_length
    length = values.size(1)
    # Missing values are the last known one; those before the first known one are that.
    filled = values
    known = values.eq(values)
    if not bool(known[:, length - season:].all()):
        places = torch.arange(length, device=values.device).expand_as(values)
        first = torch.where(known, places, torch.full_like(places, length - 1)).min(1, keepdim=True)[0]
        filled = values.gather(1, torch.maximum(self.last_known(values), first))
        filled = self.known_or(filled, torch.zeros_like(filled))
    steps = torch.arange(horizon, device=values.device)
    point = filled[:, length - season:].index_select(1, steps % season)
    # The last `count` seasons, less those 1, 2, … seasons before them: (B, seasons ahead, count * m). The past has all.
    ahead = (horizon - 1) // season + 1
    read = season * count
    earlier = values[:, length - read - ahead * season:length - season].unfold(1, read, season).flip(1)
    q, m = self.empirical((values[:, length - read:].unsqueeze(1) - earlier).transpose(1, 2), levels)
    q = q.index_select(2, steps // season)
    m = m.index_select(1, steps // season)
    return point.unsqueeze(1) + self.known_or(q, torch.zeros_like(q)), point + self.known_or(m, torch.zeros_like(m))

def regressors(self, seasons: Tensor, first: int, count: int) -> Tensor:
    # (B, 8, S, m): what the S seasons from `first` on are regressed on, where each is the last one known
    week = seasons[:, first - 6:first - 6 + count].clone()
    for lag in range(1, 7):
        week += seasons[:, first - 6 + lag:first - 6 + lag + count]
    week /= 7.0
    last = seasons[:, first:first + count]
    level = last.mean(2, keepdim=True).expand_as(last)
    end = last[:, :, last.size(2) - max(1, last.size(2) // 8):].mean(2, keepdim=True).expand_as(last)
    lagged = [seasons[:, first - lag:first - lag + count] for lag in [1, 2, 6]]
    return torch.stack([last] + lagged + [week, level, end, torch.ones_like(last)], 1)

def seasonal_regression(self, values: Tensor, season: int, count: int, levels: Tensor) -> Tuple[Tensor, Tensor]:
    horizon = self.prediction_length
    ahead = (horizon - 1) // season + 1
    read = count + 6 + ahead
    found = self.last_seasons(values.double(), season, read).flip(1)
    known = found.eq(found)
    place = self.mean_of_known(found, 1).unsqueeze(1).expand_as(found)
    everything = self.mean_of_known(found.reshape(found.size(0), -1), 1).nan_to_num(0.0).reshape(-1, 1, 1).expand_as(found)
    filled = self.known_or(found, self.known_or(place, everything))
    centre = filled.mean([1, 2], keepdim=True)
    filled = filled - centre
    scale = torch.sqrt((filled * filled).mean([1, 2], keepdim=True))
    scale = torch.where(scale > 0.0, scale, torch.ones_like(scale))
    filled = filled / scale
    towards = torch.zeros([1, 8], device=values.device).double()
    towards[0, 0] += 0.3
    towards[0, 4] += 0.7
    ridge = 0.01 * torch.eye(8, device=values.device).double()
    quantiles: List[Tensor] = []
    means: List[Tensor] = []
    for seasons in range(1, ahead + 1):
        inputs = self.regressors(filled, read - count - seasons, count)
        outputs = filled[:, read - count:]
        fitted = known[:, read - count:]
        x = inputs.flatten(2)
        weighted = x if bool(fitted.all()) else x * fitted.flatten(1).unsqueeze(1).double()
        number = weighted[:, 7].sum(1).clamp(min=1.0).reshape(-1, 1, 1)
        normal = weighted.matmul(x.transpose(1, 2)) / number
        residual = outputs.flatten(1).unsqueeze(1) - towards.matmul(x)
        weights, info = torch.linalg_solve_ex(normal + ridge, weighted.matmul(residual.transpose(1, 2)) / number)
        weights = weights.transpose(1, 2) + towards
        errors = outputs - weights.matmul(x).reshape(outputs.size())
        errors = errors.masked_fill(fitted.logical_not(), float('nan'))
        steps = min(season, horizon - (seasons - 1) * season)
        point = weights.matmul(self.regressors(filled, read - 1, 1).flatten(2)).squeeze(1)[:, :steps]
        q, m = self.empirical(errors[:, :, :steps], levels)
        quantiles.append(point.unsqueeze(1) + q.nan_to_num(0.0))
        means.append(point + m.nan_to_num(0.0))
    centre, scale = centre.squeeze(2), scale.squeeze(2)
    return (torch.cat(quantiles, 2) * scale.unsqueeze(2) + centre.unsqueeze(2)).to(values.dtype), (torch.cat(means, 1) * scale + centre).to(values.dtype)
)";

const char* mixing = R"(
def quantile_loss(self, quantiles: Tensor, values: Tensor, levels: Tensor) -> Tensor:
    # (..., A, H) and (..., H) -> (...), summed over levels and known steps
    # max(a e, (a - 1) e) = a e - min(e, 0)
    error = (values.unsqueeze(-2) - quantiles).masked_fill(values.ne(values).unsqueeze(-2), 0.0)
    below = error.clamp(max=0.0).sum([-1, -2], dtype=levels.dtype)
    return (error.sum(-1, dtype=levels.dtype) * levels).sum(-1) - below

def between_deciles(self, deciles: Tensor, levels: Tensor) -> Tensor:
    # (B, E, 9, H) at 0.1, …, 0.9 -> (B, E, A, H): linear in the logit of the level, also beyond the ends
    known = torch.logit(torch.arange(1, 10, device=deciles.device).double() / 10.0)
    wanted = torch.logit(levels.double())
    below = (wanted.unsqueeze(1) > known[1:8]).sum(1)
    share = ((wanted - known.index_select(0, below)) / (known[1:] - known[:8]).index_select(0, below)).to(deciles.dtype).unsqueeze(1)
    low, high = deciles.index_select(2, below), deciles.index_select(2, below + 1)
    return low + share * (high - low)

def outliers(self, values: Tensor) -> Tensor:
    # Further from the median than ten times as far as 99 % of the known values, of 100 or more
    count = values.eq(values).sum(1, keepdim=True)
    ordered, places = torch.sort(values, 1)
    last = values.size(1) - 1
    median = ordered.gather(1, torch.floor_divide(count, 2).clamp(max=last))
    distance = (values - median).abs()
    ordered, places = torch.sort(distance, 1)
    usual = ordered.gather(1, torch.floor_divide(99 * count, 100).clamp(max=last))
    return (distance > 10.0 * usual) & (usual > 0.0) & (count >= 100)

def place_in_horizon(self, like: Tensor) -> Tensor:
    # From -1, the first step, to 1, the last; 0 if there is one.
    steps = torch.arange(self.prediction_length, device=like.device).double()
    return (2.0 * steps - (self.prediction_length - 1)) / max(1, self.prediction_length - 1)

def mixture_weights(self, evidence: Tensor, log_weights: Tensor) -> Tensor:
    # (B, K) and (2, K) -> (B, K, H)
    tilt = log_weights.double()
    tilt = tilt[0].unsqueeze(1) + tilt[1].unsqueeze(1) * self.place_in_horizon(evidence)
    return torch.softmax(evidence.unsqueeze(2) + tilt, 1)

def distances(self, medians: Tensor, middle: Tensor, least: Tensor) -> Tensor:
    # (B, K, H), (B, 1, H) and (B, 1) -> (B, K, H): a quarter of how far each median is from that of the mixture
    most = least.unsqueeze(2)
    return torch.minimum(torch.maximum(0.25 * (medians.to(most.dtype) - middle), -most), most)

def told(self, features: Tensor) -> Tensor:
    # (B, K, L + H): the covariates that candidates read, which stand before the age of a step.
    age = max(0, features.size(2) - 1)
    return features[:, :, age - self.told_count:age].transpose(1, 2)

def without_outliers(self, past_target: Tensor, past_observed: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    values = torch.where(past_observed > 0.0, past_target, torch.full_like(past_target, float('nan')))
    if self.skips_outliers:
        far = self.outliers(values)
        values = values.masked_fill(far, float('nan'))
        past_target = past_target.masked_fill(far, 0.0)
        past_observed = past_observed.masked_fill(far, 0.0)
    return values, past_target, past_observed

def moved_on(self, values: Tensor, past_target: Tensor, past_observed: Tensor, features: Tensor, draws: Tensor) -> Tensor:
    # (series): whether the past of a row is that of a row before it, a stride later. Then the windows of both but the last
    # of its own have one record. Not where so much is missing that a candidate may read further back than its seasons.
    together = self.rows_together
    series = values.size(0) // together
    apart = self.windows_in_a_stride
    again = torch.zeros([series], device=values.device).gt(0.0)
    if features.size(2) > 0 or draws.size(1) > 0 or series <= apart:
        return again
    rows = (series - apart) * together
    length = values.size(1)
    stride = self.mixture_stride
    same = past_target[:rows, stride:].eq(past_target[apart * together:, :length - stride]).all(1)
    same = same & past_observed[:rows, stride:].eq(past_observed[apart * together:, :length - stride]).all(1)
    if bool(values.ne(values).any()):
        last = self.last_known(values)
        places = torch.arange(length, device=values.device)
        gap = torch.where(last >= 0, places - last, torch.zeros_like(last)).amax(1)
        same = same & (gap[:rows] < self.shortest_read)
    again[apart:] = same.reshape(-1, together).all(1)
    return again

def record(self, values: Tensor, past_target: Tensor, past_observed: Tensor, features: Tensor, draws: Tensor, external: Tensor, for_training: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    # What each candidate would have forecast of the last windows, (B, J, K, 9, H), what came (B, J, H), the logarithms
    # of their weights before what is trained (B, K), how many windows count (B, 1), and the least mean loss (B, 1).
    network = self.network_length
    reach = self.longest_network
    horizon = self.prediction_length
    length = past_target.size(1)
    rows = values.size(0)
    deciles = torch.arange(1, 10, device=values.device).double() / 10.0
    ends = length - self.mixture_stride * torch.arange(1, self.mixture_windows + 1, device=values.device)
    places = torch.arange(length, device=values.device).expand_as(values)
    begins = torch.where(values.eq(values), places, torch.full_like(places, length)).amin(1, keepdim=True)
    counts = begins < ends - max(self.longest_season, horizon)
    windows = self.mixture_windows
    together = self.rows_together
    at_a_time = rows if draws.size(1) > 0 else max(1, 64 // together) * together  # more take more memory
    if not for_training:  # how many count, of any row: what is found is the same but for rounding
        windows = int(counts.any(0).sum())
    ends = ends[:windows]
    truth = values.index_select(1, (ends.unsqueeze(1) + torch.arange(horizon, device=values.device)).flatten()).reshape(rows, windows, horizon)
    truth = truth.masked_fill(counts[:, :windows].unsqueeze(2).logical_not(), float('nan'))
    known = external.eq(external).flatten(3).all(3)
    external = torch.where(known.unsqueeze(3).unsqueeze(4), external, torch.zeros_like(external))
    # Each forecast that counts is made once, those of the variables of a series side by side. Number 0 is that of the others.
    series = rows // together
    counting = counts[:, :windows].reshape(series, together, windows).any(1)
    again = torch.zeros([series], device=values.device).gt(0.0)
    if not for_training:  # in training no window's loss is worked out from another's
        again = self.moved_on(values, past_target, past_observed, features, draws)
    fresh = counting.clone()
    fresh[:, 1:] = fresh[:, 1:] & again.logical_not().unsqueeze(1)
    number = fresh.flatten().cumsum(0).reshape(series, windows).masked_fill(counting.logical_not(), 0)
    apart = self.windows_in_a_stride
    for j in range(1, windows):
        of_another = again[apart:] & counting[apart:, j]
        number[apart:, j] = torch.where(of_another, number[:max(0, series - apart), j - 1], number[apart:, j])
    beside = torch.arange(together, device=values.device)
    made = fresh.nonzero()
    if for_training:  # in parts of one size, whatever others hold
        part = at_a_time // together
        made = torch.constant_pad_nd(made, [0, 0, 0, (part - made.size(0) % part) % part])
    whose = (made[:, :1] * together + beside).flatten().unsqueeze(1)
    at = ends.index_select(0, made[:, 1]).unsqueeze(1).expand(made.size(0), together).flatten().unsqueeze(1)
    # As long as the longest, so that they are one tensor; no candidate counts what is missing.
    padding = self.mixture_stride * max(0, windows - 1)
    padded = torch.constant_pad_nd(values, [padding, 0], float('nan'))
    padded_told = torch.constant_pad_nd(self.told(features), [padding, 0], 0.0).transpose(1, 2)
    past = torch.arange(-reach, 0, device=values.device)
    times = torch.arange(-reach, horizon, device=values.device)
    before = torch.arange(self.mixture_stride - length, 0, device=values.device) + padding
    told_times = torch.arange(self.mixture_stride - length, horizon, device=values.device) + padding
    forecasts = [values.new_zeros([together, self.candidate_count - known.size(2), 9, horizon])]
    by_forecast = [values.new_zeros([together, self.candidate_count - known.size(2)]).double()]
    for first in range(0, whose.size(0), at_a_time):
        row, end = whose[first:first + at_a_time], at[first:first + at_a_time]
        target, observed = past_target[row, end + past], past_observed[row, end + past]
        step_features = features[row, end + times]
        drawn = draws.index_select(0, row.flatten())
        q, mean, samples = self.network(target[:, reach - network:], observed[:, reach - network:], step_features[:, reach - network:], deciles, drawn)
        told = padded_told[row, end + told_times].transpose(1, 2)
        candidates, means = self.candidates(target, observed, step_features, padded[row, end + before], told, deciles, drawn)
        all = torch.cat([q.unsqueeze(1), candidates], 1)
        forecasts.append(all)
        by_forecast.append(self.quantile_loss(all, values[row, end + times[reach:]].unsqueeze(1), deciles))
    order = (number.unsqueeze(1) * together + beside.unsqueeze(1)).flatten()
    history, by_window = torch.cat(forecasts).index_select(0, order), torch.cat(by_forecast).index_select(0, order)
    history = history.reshape(rows, windows, by_window.size(1), 9, horizon)
    by_window = by_window.reshape(rows, windows, by_window.size(1)).masked_fill(counts[:, :windows].unsqueeze(2).logical_not(), 0.0)
    if known.size(2) > 0:
        others = external[:, 1:windows + 1, :, :9]
        history = torch.cat([history, others], 2)
        by_window = torch.cat([by_window, self.quantile_loss(others, truth.unsqueeze(2), deciles)], 2)
    # Of external ones, which of them take part.
    counting = truth.eq(truth).any(2)
    takes_part = known[:, 0] & (known[:, 1:windows + 1] | counting.unsqueeze(2).logical_not()).all(1)
    takes_part = torch.cat([torch.ones([rows, history.size(2) - known.size(2)], device=values.device).gt(0.0), takes_part], 1)
    ages = torch.exp(-torch.arange(1, windows + 1, device=values.device).double() / 14.0).unsqueeze(1)
    losses = (ages * by_window).sum(1)
    losses = torch.where(takes_part, losses, torch.zeros_like(losses))
    number = 9.0 * (ages.squeeze(1) * truth.eq(truth).sum(2)).sum(1, keepdim=True)
    least = losses.amin(1, keepdim=True) / number.clamp(min=1e-300)
    losses = losses + 1e-9 * losses.amax(1, keepdim=True) + 1e-300
    counted = counting.sum(1, keepdim=True).double()
    evidence = -counted.clamp(max=8.0) * torch.log(losses)
    evidence[:, 0] += 0.6931471805599453
    if self.network_count > 0:
        evidence[:, self.first_network:self.first_network + self.network_count] += 0.6931471805599453
    evidence = evidence.masked_fill(takes_part.logical_not(), -float('inf'))
    return history, truth, evidence, counted, least

def log_best_spread(self, quantiles: Tensor, middle: Tensor, truth: Tensor, levels: Tensor) -> Tensor:
    # (B, 1): of the spreads about the medians (B, J, 1, H), the one that would have done best
    ages = torch.exp(-torch.arange(1, truth.size(1) + 1, device=truth.device).double() / 14.0)
    by_spread: List[Tensor] = []
    for i in range(self.spreads.size(0)):
        wide = middle + self.spreads[i] * (quantiles - middle)
        by_spread.append((ages * self.quantile_loss(wide, truth, levels)).sum(1))
    best = self.spreads.index_select(0, torch.stack(by_spread, 1).argmin(1)).double()
    return torch.log(best.unsqueeze(1))

def mixture_spread(self, history: Tensor, truth: Tensor, weights: Tensor, counted: Tensor, levels: Tensor) -> Tensor:
    # (B, A, 1)
    deciles = torch.arange(1, 10, device=history.device).double() / 10.0
    mixed = torch.zeros_like(history[:, :, 0])
    for k in range(history.size(2)):
        mixed.addcmul_(history[:, :, k], weights[:, k].unsqueeze(1).unsqueeze(2))
    middle = mixed[:, :, 4:5]
    share = counted / (counted + 3.0)
    spread = share * self.log_best_spread(mixed, middle, truth, deciles)
    outer = torch.zeros_like(spread)
    if self.widens_tails:
        ends = torch.tensor([0.05, 0.95], dtype=deciles.dtype, device=history.device)
        tails = middle + torch.exp(spread).to(mixed.dtype).unsqueeze(2).unsqueeze(3) * (self.between_deciles(mixed, ends) - middle)
        outer = (share * self.log_best_spread(tails, middle, truth, ends) + (1.0 - share) * 0.1823215567939546).clamp(min=0.0)
    # From level 0.75 (0.25) to 0.95 (0.05), linear in the logit
    far = ((torch.logit(levels.double()).abs() - 1.0986122886681098) / 1.8458266904983307).clamp(0.0, 1.0)
    return torch.exp(spread + outer * far).unsqueeze(2)

def to_train_on(self, past_target: Tensor, past_observed: Tensor, features: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    # `record`, and the candidates' forecasts of the coming window (B, K, 9, H).
    deciles = torch.arange(1, 10, device=past_target.device).double() / 10.0
    horizon = self.prediction_length
    values, past_target, past_observed = self.without_outliers(past_target, past_observed)
    draws = values.new_zeros([values.size(0), 0, horizon, 2])
    external = values.new_zeros([values.size(0), self.mixture_windows + 1, 0, 10, horizon])
    history, truth, evidence, counted, least = self.record(values, past_target, past_observed, features, draws, external, True)
    length = past_target.size(1)
    network = self.network_length
    reach = self.longest_network
    q, mean, samples = self.network(past_target[:, length - network:], past_observed[:, length - network:], features[:, length - network:], deciles, draws)
    candidates, means = self.candidates(past_target[:, length - reach:], past_observed[:, length - reach:], features[:, length - reach:], values, self.told(features), deciles, draws)
    return history, truth, evidence, counted, least, torch.cat([q.unsqueeze(1), candidates], 1)

def mixture(self, past_target: Tensor, past_observed: Tensor, features: Tensor, asked: Tensor, uniform: Tensor, external: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    network = self.network_length
    reach = self.longest_network
    horizon = self.prediction_length
    length = past_target.size(1)
    values, past_target, past_observed = self.without_outliers(past_target, past_observed)
    draws = uniform if self.from_samples else uniform[:, :0]
    history, truth, evidence, counted, least = self.record(values, past_target, past_observed, features, draws, external, False)
    weights = self.mixture_weights(evidence, self.log_weights).to(values.dtype)
    # The forecast. Sample i of S at a step is the mixture's quantile at its rank there among the network's samples.
    count = uniform.size(1)
    half = torch.full([1], 0.5, device=values.device).double()
    ranks = (torch.arange(count, device=values.device).double() + 0.5) / max(1, count)
    asked = torch.cat([asked, half])
    levels = torch.cat([asked, ranks])
    q, mean, samples = self.network(past_target[:, length - network:], past_observed[:, length - network:], features[:, features.size(1) - network - horizon:], asked, uniform)
    candidates, means = self.candidates(past_target[:, length - reach:], past_observed[:, length - reach:], features[:, features.size(1) - reach - horizon:], values, self.told(features), levels, draws)
    ordered, order = torch.sort(samples, 1)
    spread = (self.mixture_spread(history, truth, weights, counted, levels) * torch.exp(self.log_spread.double())).to(values.dtype)
    external = external[:, 0].nan_to_num(0.0, 0.0, 0.0)
    others = self.between_deciles(external[:, :, :9], levels)
    both = torch.cat([torch.cat([q, ordered], 1).unsqueeze(1), candidates, others], 1)
    mixed = (both * weights.unsqueeze(2)).sum(1)
    middle, inner = mixed[:, asked.size(0) - 1:asked.size(0)], spread[:, asked.size(0) - 1:asked.size(0)]
    mixed = middle + spread * (mixed - middle)
    mean = (torch.cat([mean.unsqueeze(1), means, external[:, :, 9]], 1) * weights).sum(1)
    mean = middle.squeeze(1) + inner.squeeze(2) * (mean - middle.squeeze(1))
    apart = self.distances(both[:, :, asked.size(0) - 1], middle, least)
    move = (apart * self.moves.to(apart.dtype).unsqueeze(1)).sum(1, keepdim=True).to(values.dtype)
    mixed, mean = mixed + move, mean + move.squeeze(1)
    # Of few samples all may lie on one side of the median: in order again, since outer ones are moved further.
    drawn, places = torch.sort(mixed[:, asked.size(0):], 1)
    samples = drawn.gather(1, torch.argsort(order, 1))
    low, high = self.lower_bound, self.upper_bound
    return mixed[:, :asked.size(0) - 1].clamp(low, high), mean.clamp(low, high), samples.clamp(low, high)
)";

std::string call(const Mixture::Member& member) {
  const auto sizes = cat("values, ", member.season, ", ", member.seasons, ", ");
  switch (member.method) {
    case Candidate::start:
      return "q, m, s = self.start.network(past_target[:, past_target.size(1) - self.network_length:], "
             "past_observed[:, past_target.size(1) - self.network_length:], "
             "features[:, features.size(1) - self.network_length - self.prediction_length:], levels, draws)";
    case Candidate::seasonal_quantiles: return cat("q, m = self.seasonal_quantiles(", sizes, "False, levels)");
    case Candidate::moved_quantiles: return cat("q, m = self.seasonal_quantiles(", sizes, "True, levels)");
    case Candidate::covariate_quantiles:
      return cat("q, m = self.covariate_quantiles(values, told, ", member.season, ", ", member.seasons, ", levels)");
    case Candidate::seasonal_naive_bands:
    case Candidate::last_value_bands: return cat("q, m = self.seasonal_naive_bands(", sizes, "levels)");
    case Candidate::seasonal_regression: return cat("q, m = self.seasonal_regression(", sizes, "levels)");
  }
  return {};
}

std::string call(const MixedNetwork& network, std::size_t i) {
  const auto sizes = cat(network.length, ", ", network.every, ")");
  return cat("    past = self.each_of(past_target, ", sizes, "\n    q, m, s = self.network_", i,
             ".network(past, self.each_of(past_observed, ", sizes, ", past.new_zeros([past.size(0), ",
             network.length + network.horizon, ", 0]), levels, past.new_zeros([past.size(0), 0, ", network.horizon,
             ", 2]))\n    quantiles.append(self.in_turn(q, ", network.every,
             "))\n    means.append(self.in_turn(m.unsqueeze(1), ", network.every, ").squeeze(1))\n");
}

}  // namespace

std::int64_t mixed_forecasts(const Mixture& mixture) {
  return 1 + std::ssize(mixture.members) + std::ssize(mixture.networks) + std::ssize(mixture.external);
}

std::vector<MixtureParameter> mixture_parameters(const Mixture& mixture) {
  const auto forecasts = mixed_forecasts(mixture);
  return {{"log_weights", {2, forecasts}}, {"log_spread", {1}}, {"moves", {forecasts}}};
}

const std::vector<double>& mixture_spreads() {
  static const std::vector<double> spreads = {0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5};
  return spreads;
}

std::string mixture_script(const Mixture& mixture, const std::vector<MixedNetwork>& networks) {
  std::string all = R"(
def candidates(self, past_target: Tensor, past_observed: Tensor, features: Tensor, values: Tensor, told: Tensor, levels: Tensor, draws: Tensor) -> Tuple[Tensor, Tensor]:
    # (B, K, A, H) and (B, K, H)
    quantiles: List[Tensor] = []
    means: List[Tensor] = []
)";
  for (const auto& member : mixture.members)
    all += cat("    ", call(member), "\n    quantiles.append(q)\n    means.append(m)\n");
  for (std::size_t i = 0; i < networks.size(); ++i) all += call(networks[i], i);
  all += mixture.members.empty() && networks.empty()
             ? "    return values.new_zeros([values.size(0), 0, levels.size(0), "
               "self.prediction_length]), values.new_zeros([values.size(0), 0, "
               "self.prediction_length])\n"
             : "    return torch.stack(quantiles, 1), torch.stack(means, 1)\n";
  return cat(methods, all, mixing);
}

}  // namespace tsdp::models

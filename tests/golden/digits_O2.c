/* ---- State ---- */

/* What the command line, or the caller, decides. */
typedef struct Options {
    double lr;               /* peak learning rate */
    int64_t rounds;          /* epochs to train */
    const char *data;        /* file of the digits */
} Options;

/* Everything that outlives a step. One block of memory holds the buffers. */
typedef struct State {
    Options option;
    uint64_t seed;
    int threads;
    RtBlock block;
    struct { /* adam */
        float *weight;                       /* masters */
        uint16_t *copy, *gradient;           /* bf16 */
        float *exp_avg, *exp_avg_sq;
        int64_t step;                        /* updates taken */
        double beta1_pow, beta2_pow;         /* beta1 and beta2 to the power of step */
        double lr, grad_norm;                /* of the last step */
    } opt;
    RtScaler scaler;                         /* of the loss */
    struct { /* train fit */
        int64_t step, steps;                 /* attempted, planned in all */
        int64_t epoch, row;                  /* where the next step begins */
        int64_t skipped;                     /* steps that an optimizer skipped */
        float loss;
    } fit;
    struct { /* eval test */
        float accuracy;
    } test;
    double *chunk;                           /* partial sums of a norm */
    char *arena;                             /* values that live within a step */
    RtScratch scratch;                       /* of the matrix products */
} State;

/* ---- Parameters ---- */

/* Where each weight begins in the flat buffers of opt. */
enum {
    NET_FC1_WEIGHT = 0,                      /* [256, 64] */
    NET_FC1_BIAS = 16384,                    /* [256] */
    NET_FC2_WEIGHT = 16640,                  /* [256, 256] */
    NET_FC2_BIAS = 82176,                    /* [256] */
    NET_FC3_WEIGHT = 82432,                  /* [10, 256] */
    NET_FC3_BIAS = 84992,                    /* [10] */
    OPT_ELEMENTS = 85024,
    OPT_PARAMS = 6
};

static const RtParam opt_param[OPT_PARAMS] = {
    {"net", "fc1.weight", NET_FC1_WEIGHT, 16384, 2, {256, 64}, {RT_INIT_UNIFORM, -0.125f, 0.125f}},
    {"net", "fc1.bias", NET_FC1_BIAS, 256, 1, {256}, {RT_INIT_UNIFORM, -0.125f, 0.125f}},
    {"net", "fc2.weight", NET_FC2_WEIGHT, 65536, 2, {256, 256},
     {RT_INIT_UNIFORM, -0.0625f, 0.0625f}},
    {"net", "fc2.bias", NET_FC2_BIAS, 256, 1, {256}, {RT_INIT_UNIFORM, -0.0625f, 0.0625f}},
    {"net", "fc3.weight", NET_FC3_WEIGHT, 2560, 2, {10, 256}, {RT_INIT_UNIFORM, -0.0625f, 0.0625f}},
    {"net", "fc3.bias", NET_FC3_BIAS, 10, 1, {10}, {RT_INIT_UNIFORM, -0.0625f, 0.0625f}},
};

enum { ARENA_BYTES = 77824 };

/* Cuts the block into the buffers of the state. */
static void state_layout(State *s)
{
    RtBlock *b = &s->block;
    s->opt.weight = (float *)rt_cut(b, OPT_ELEMENTS, sizeof(float));
    s->opt.copy = (uint16_t *)rt_cut(b, OPT_ELEMENTS, sizeof(uint16_t));
    s->opt.gradient = (uint16_t *)rt_cut(b, OPT_ELEMENTS, sizeof(uint16_t));
    s->opt.exp_avg = (float *)rt_cut(b, OPT_ELEMENTS, sizeof(float));
    s->opt.exp_avg_sq = (float *)rt_cut(b, OPT_ELEMENTS, sizeof(float));
    s->chunk = (double *)rt_cut(b, 21, sizeof(double));
    s->arena = (char *)rt_cut(b, ARENA_BYTES, 1);
    s->scratch.data = rt_cut(b, s->scratch.bytes, 1);
}

/* Rounds the masters to the copies that the kernels read. */
static void state_round(State *s)
{
    for (int64_t i = 0; i < OPT_ELEMENTS; i++)
        s->opt.copy[i] = rt_bf16_from_f32(s->opt.weight[i]);
}

/* Takes all memory and draws the first weights; seed and threads are set. */
static int state_create(State *s)
{
    s->scratch.bytes = rt_gemm_scratch(RT_BF16, RT_FUSED, 256, 256, 256, s->threads);
    state_layout(s);
    int status = rt_block_take(&s->block);
    if (status)
        return status;
    state_layout(s);
    for (int i = 0; i < OPT_PARAMS && !status; i++)
        status = rt_param_init(&opt_param[i], s->seed, s->opt.weight + opt_param[i].offset);
    state_round(s);
    s->opt.beta1_pow = s->opt.beta2_pow = 1;
    s->scaler = rt_scaler_make_static(1.0f);
    return status;
}

static void state_destroy(State *s)
{
    rt_block_free(&s->block);
}

/* Lists what a checkpoint holds. */
static void state_table(State *s, RtTable *t)
{
    for (int i = 0; i < OPT_PARAMS; i++) {
        const RtParam *p = &opt_param[i];
        rt_table_add(t, "param/", p, "", RT_ST_F32, s->opt.weight + p->offset);
        rt_table_add(t, "opt/opt/", p, ".exp_avg", RT_ST_F32, s->opt.exp_avg + p->offset);
        rt_table_add(t, "opt/opt/", p, ".exp_avg_sq", RT_ST_F32, s->opt.exp_avg_sq + p->offset);
    }
    rt_table_scalar(t, "opt/opt.step", RT_ST_I64, &s->opt.step);
    rt_table_scalar(t, "opt/opt.beta1_pow", RT_ST_F64, &s->opt.beta1_pow);
    rt_table_scalar(t, "opt/opt.beta2_pow", RT_ST_F64, &s->opt.beta2_pow);
    rt_table_scalar(t, "scaler/scaler.scale", RT_ST_F32, &s->scaler.scale);
    rt_table_scalar(t, "scaler/scaler.growth", RT_ST_I32, &s->scaler.growth);
    rt_table_scalar(t, "scaler/scaler.hysteresis", RT_ST_I32, &s->scaler.hysteresis);
    rt_table_scalar(t, "scaler/scaler.skips", RT_ST_I64, &s->scaler.skips);
    rt_table_scalar(t, "train/fit.step", RT_ST_I64, &s->fit.step);
    rt_table_scalar(t, "train/fit.epoch", RT_ST_I64, &s->fit.epoch);
    rt_table_scalar(t, "train/fit.row", RT_ST_I64, &s->fit.row);
}

/* Lists the weights of an instance, called as weight files do. */
static void weight_table(State *s, RtTable *t, const char *instance)
{
    for (int i = 0; i < OPT_PARAMS; i++)
        if (!strcmp(opt_param[i].instance, instance))
            rt_table_add(t, "", &opt_param[i], "", RT_ST_F32, s->opt.weight + opt_param[i].offset);
}

/* ---- Kernels ---- */

// loss = cross_entropy(net(x), y);                              digits.amp:30
RT_LEAF void fit_x_bf16(int64_t lo, int64_t hi,
        uint16_t *restrict x_bf16, // bf16[N, 64]
        const float *restrict x)   // f32[N, 64]
{
    for (int64_t i = lo; i < hi; i++) {
        x_bf16[i] = rt_bf16_from_f32(x[i]);
    }
}

// return x |> fc1 |> relu |> fc2 |> relu |> fc3;                digits.amp:20
typedef struct fit_fc1_relu_args {
    uint16_t *fc1_relu;           // bf16[N, 256]
    const uint16_t *net_fc1_bias; // bf16[256]
} fit_fc1_relu_args;

RT_LEAF void fit_fc1_relu(const void *args, int64_t m, int64_t n, int64_t count,
        const float *restrict acc)
{
    const fit_fc1_relu_args *a = (const fit_fc1_relu_args *)args;
    uint16_t *restrict fc1_relu = a->fc1_relu;
    const uint16_t *restrict net_fc1_bias = a->net_fc1_bias;
    for (int64_t j = 0; j < count; j++) {
        const float fc1 = acc[j] + rt_f32_from_bf16(net_fc1_bias[n + j]);
        fc1_relu[m * 256 + n + j] = rt_bf16_from_f32(fc1 > 0 ? fc1 : (fc1 == fc1 ? 0 : fc1));
    }
}

// return x |> fc1 |> relu |> fc2 |> relu |> fc3;                digits.amp:20
// loss = cross_entropy(net(x), y);                              digits.amp:30
typedef struct fit_fc3_args {
    float *fc3;                   // f32[N, 10]
    const uint16_t *net_fc3_bias; // bf16[10]
} fit_fc3_args;

RT_LEAF void fit_fc3(const void *args, int64_t m, int64_t n, int64_t count,
        const float *restrict acc)
{
    const fit_fc3_args *a = (const fit_fc3_args *)args;
    float *restrict fc3 = a->fc3;
    const uint16_t *restrict net_fc3_bias = a->net_fc3_bias;
    for (int64_t j = 0; j < count; j++) {
        fc3[m * 10 + n + j] = acc[j] + rt_f32_from_bf16(net_fc3_bias[n + j]);
    }
}

// loss = cross_entropy(net(x), y);                              digits.amp:30
RT_LEAF void fit_d_fc3(int64_t lo, int64_t hi,
        float *restrict nll,       // f32[N]
        uint16_t *restrict d_fc3,  // bf16[N, 10]
        const int32_t *restrict y, // i32[N]
        const float *restrict fc3, // f32[N, 10]
        int64_t N)
{
    const float neg = -(1.0f / (float)N);
    for (int64_t i = lo; i < hi; i++) {
        const int32_t y_i = y[i];
        float largest = -INFINITY;
        // largest, d_fc3_i
        float d_fc3_i_lane[RT_LANES] = {0};
        for (int64_t j = 0; j < 10; j++) {
            largest = rt_max(fc3[i * 10 + j], largest);
            d_fc3_i_lane[j] += ((int32_t)j == y_i) ? neg : 0.0f;
        }
        const float d_fc3_i = rt_fold32(d_fc3_i_lane);
        // total
        float total_lane[RT_LANES] = {0};
        for (int64_t j = 0; j < 10; j++) {
            total_lane[j] += rt_exp(fc3[i * 10 + j] - largest);
        }
        const float total = rt_fold32(total_lane);
        const float log_total = rt_log(total);
        // sum, d_fc3
        float sum_lane[RT_LANES] = {0};
        for (int64_t j = 0; j < 10; j++) {
            const int32_t t = (int32_t)j == y_i;
            const float log_probs = (fc3[i * 10 + j] - largest) - log_total;
            sum_lane[j] += t ? log_probs : 0.0f;
            d_fc3[i * 10 + j] = rt_bf16_from_f32((t ? neg : 0.0f) -
                    (rt_exp(log_probs) * d_fc3_i));
        }
        const float sum = rt_fold32(sum_lane);
        nll[i] = -sum;
    }
}

// loss = cross_entropy(net(x), y);                              digits.amp:30
RT_LEAF void fit_loss(
        float *restrict loss_report, // f32
        const float *restrict nll,   // f32[N]
        int64_t N)
{
    float loss_lane[RT_LANES] = {0};
    for (int64_t block = 0; block < N; block += RT_LANES) {
        const int64_t width = N - block < RT_LANES ? N - block : RT_LANES;
        for (int64_t l = 0; l < width; l++) {
            const int64_t j = block + l;
            loss_lane[l] += nll[j];
        }
    }
    const float loss = rt_fold32(loss_lane);
    loss_report[0] = loss / (float)N;
}

// return x |> fc1 |> relu |> fc2 |> relu |> fc3;                digits.amp:20
// loss = cross_entropy(net(x), y);                              digits.amp:30
RT_LEAF void fit_d_fc3_bias(int64_t lo, int64_t hi,
        uint16_t *restrict d_fc3_bias,  // bf16[10]
        const uint16_t *restrict d_fc3, // bf16[N, 10]
        int64_t N)
{
    for (int64_t column = lo; column < hi; column += 64) {
        const int64_t width = hi - column < 64 ? hi - column : 64;
        float d_fc3_bias2[64] = {0};
        for (int64_t i = 0; i < N; i++) {
            for (int64_t l = 0; l < width; l++) {
                const int64_t j = column + l;
                d_fc3_bias2[l] += rt_f32_from_bf16(d_fc3[i * 10 + j]);
            }
        }
        for (int64_t l = 0; l < width; l++) {
            const int64_t j = column + l;
            d_fc3_bias[j] = rt_bf16_from_f32(d_fc3_bias2[l]);
        }
    }
}

// return x |> fc1 |> relu |> fc2 |> relu |> fc3;                digits.amp:20
typedef struct fit_d_fc3_weight_args {
    uint16_t *d_fc3_weight; // bf16[10, 256]
} fit_d_fc3_weight_args;

RT_LEAF void fit_d_fc3_weight(const void *args, int64_t m, int64_t n, int64_t count,
        const float *restrict acc)
{
    const fit_d_fc3_weight_args *a = (const fit_d_fc3_weight_args *)args;
    uint16_t *restrict d_fc3_weight = a->d_fc3_weight;
    for (int64_t j = 0; j < count; j++) {
        d_fc3_weight[m * 256 + n + j] = rt_bf16_from_f32(acc[j]);
    }
}

// return x |> fc1 |> relu |> fc2 |> relu |> fc3;                digits.amp:20
typedef struct fit_d_fc2_args {
    uint16_t *d_fc2; // bf16[N, 256]
} fit_d_fc2_args;

RT_LEAF void fit_d_fc2(const void *args, int64_t m, int64_t n, int64_t count,
        const float *restrict acc)
{
    const fit_d_fc2_args *a = (const fit_d_fc2_args *)args;
    uint16_t *restrict d_fc2 = a->d_fc2;
    const uint16_t *fc2_relu = d_fc2; // replaced in place
    for (int64_t j = 0; j < count; j++) {
        const float fc2_relu_j = rt_f32_from_bf16(fc2_relu[m * 256 + n + j]);
        d_fc2[m * 256 + n + j] = rt_bf16_from_f32((fc2_relu_j <= 0.0f) ? 0.0f : acc[j]);
    }
}

// return x |> fc1 |> relu |> fc2 |> relu |> fc3;                digits.amp:20
RT_LEAF void fit_d_fc2_bias(int64_t lo, int64_t hi,
        uint16_t *restrict d_fc2_bias,  // bf16[256]
        const uint16_t *restrict d_fc2, // bf16[N, 256]
        int64_t N)
{
    for (int64_t column = lo; column < hi; column += 64) {
        float d_fc2_bias2[64] = {0};
        for (int64_t i = 0; i < N; i++) {
            for (int64_t l = 0; l < 64; l++) {
                const int64_t j = column + l;
                d_fc2_bias2[l] += rt_f32_from_bf16(d_fc2[i * 256 + j]);
            }
        }
        for (int64_t l = 0; l < 64; l++) {
            const int64_t j = column + l;
            d_fc2_bias[j] = rt_bf16_from_f32(d_fc2_bias2[l]);
        }
    }
}

// return x |> fc1 |> relu |> fc2 |> relu |> fc3;                digits.amp:20
typedef struct fit_d_fc2_weight_args {
    uint16_t *d_fc2_weight; // bf16[256, 256]
} fit_d_fc2_weight_args;

RT_LEAF void fit_d_fc2_weight(const void *args, int64_t m, int64_t n, int64_t count,
        const float *restrict acc)
{
    const fit_d_fc2_weight_args *a = (const fit_d_fc2_weight_args *)args;
    uint16_t *restrict d_fc2_weight = a->d_fc2_weight;
    for (int64_t j = 0; j < count; j++) {
        d_fc2_weight[m * 256 + n + j] = rt_bf16_from_f32(acc[j]);
    }
}

// return x |> fc1 |> relu |> fc2 |> relu |> fc3;                digits.amp:20
typedef struct fit_d_fc1_weight_args {
    uint16_t *d_fc1_weight; // bf16[256, 64]
} fit_d_fc1_weight_args;

RT_LEAF void fit_d_fc1_weight(const void *args, int64_t m, int64_t n, int64_t count,
        const float *restrict acc)
{
    const fit_d_fc1_weight_args *a = (const fit_d_fc1_weight_args *)args;
    uint16_t *restrict d_fc1_weight = a->d_fc1_weight;
    for (int64_t j = 0; j < count; j++) {
        d_fc1_weight[m * 64 + n + j] = rt_bf16_from_f32(acc[j]);
    }
}

// report accuracy = accuracy(net(x), y);                        digits.amp:38
RT_LEAF void test_right(int64_t lo, int64_t hi,
        float *restrict right,     // f32[N]
        const float *restrict fc3, // f32[N, 10]
        const int32_t *restrict y) // i32[N]
{
    for (int64_t i = lo; i < hi; i++) {
        const int32_t y_i = y[i];
        float best = -INFINITY;
        int32_t predicted = 0;
        for (int64_t j = 0; j < 10; j++) {
            const float fc3_j = fc3[i * 10 + j];
            if (fc3_j > best || (fc3_j != fc3_j && best == best)) {
                best = fc3_j;
                predicted = (int32_t)j;
            }
        }
        right[i] = (float)(predicted == y_i);
    }
}

/* ---- Optimizer opt ---- */

// optimizer opt = adam(net, lr = lr);                                                digits.amp:27
typedef struct opt_hyper {
    float lr, beta1, beta2, eps, weight_decay, bc1, bc2;
} opt_hyper;

/* adam on elements lo to hi. */
RT_LEAF void opt_sweep(int64_t lo, int64_t hi, opt_hyper h, float *restrict weight,
                       uint16_t *restrict copy, const uint16_t *restrict gradient,
                       float *restrict exp_avg, float *restrict exp_avg_sq)
{
    const float lr = h.lr, beta1 = h.beta1, beta2 = h.beta2, eps = h.eps,
        weight_decay = h.weight_decay, bc1 = h.bc1, bc2 = h.bc2;
    for (int64_t i = lo; i < hi; i++) {
        float p = weight[i];
        float g = rt_f32_from_bf16(gradient[i]);
        g = g + weight_decay * p;
        exp_avg[i] = beta1 * exp_avg[i] + (1.0f - beta1) * g;
        exp_avg_sq[i] = beta2 * exp_avg_sq[i] + (1.0f - beta2) * g * g;
        p = p - lr * (exp_avg[i] * bc1) / (rt_sqrt(exp_avg_sq[i] * bc2) + eps);
        weight[i] = p;
        copy[i] = rt_bf16_from_f32(p);
    }
}

/* Applies the gradients. Skips, changing nothing, when one of them is not finite. Was the
 * step taken? */
static bool opt_update(State *s)
{
    double squares = rt_flat_squares_bf16(s->opt.gradient, OPT_ELEMENTS, s->chunk);
    s->opt.grad_norm = sqrt(squares);
    s->opt.lr = s->option.lr;
    if (!isfinite((float)s->opt.grad_norm))
        return false;
    opt_hyper h;
    h.lr = (float)s->opt.lr;
    h.beta1 = 0.9f;
    h.beta2 = 0.999f;
    h.eps = 1e-8f;
    h.weight_decay = 0.0f;
    s->opt.step++;
    s->opt.beta1_pow *= h.beta1;
    h.bc1 = (float)(1 / (1 - s->opt.beta1_pow));
    s->opt.beta2_pow *= h.beta2;
    h.bc2 = (float)(1 / (1 - s->opt.beta2_pow));
    RT_FOR(lo, hi, OPT_ELEMENTS, 4096,
           opt_sweep(lo, hi, h, s->opt.weight, s->opt.copy, s->opt.gradient, s->opt.exp_avg,
                     s->opt.exp_avg_sq));
    return true;
}

/* ---- Steps ---- */

// train fit(x: float[N, 64], y: i32[N]) on digits.train                              digits.amp:25
static void fit_step(State *s, int64_t N, const float *x, const int32_t *y)
{
    const uint16_t *net_fc1_weight = s->opt.copy + NET_FC1_WEIGHT;
    const uint16_t *net_fc1_bias = s->opt.copy + NET_FC1_BIAS;
    const uint16_t *net_fc2_weight = s->opt.copy + NET_FC2_WEIGHT;
    const uint16_t *net_fc2_bias = s->opt.copy + NET_FC2_BIAS;
    const uint16_t *net_fc3_weight = s->opt.copy + NET_FC3_WEIGHT;
    const uint16_t *net_fc3_bias = s->opt.copy + NET_FC3_BIAS;
    uint16_t *d_fc1_weight = s->opt.gradient + NET_FC1_WEIGHT;
    uint16_t *d_fc1_bias = s->opt.gradient + NET_FC1_BIAS;
    uint16_t *d_fc2_weight = s->opt.gradient + NET_FC2_WEIGHT;
    uint16_t *d_fc2_bias = s->opt.gradient + NET_FC2_BIAS;
    uint16_t *d_fc3_weight = s->opt.gradient + NET_FC3_WEIGHT;
    uint16_t *d_fc3_bias = s->opt.gradient + NET_FC3_BIAS;
    uint16_t *x_bf16 = (uint16_t *)(s->arena + 65536);       /* [N, 64] */
    uint16_t *fc1_relu = (uint16_t *)(s->arena + 0);         /* [N, 256] */
    uint16_t *fc2_relu = (uint16_t *)(s->arena + 32768);     /* [N, 256] */
    float *fc3 = (float *)(s->arena + 73728);                /* [N, 10] */
    float *nll = (float *)(s->arena + 77568);                /* [N] */
    uint16_t *d_fc3 = (uint16_t *)(s->arena + 76288);        /* [N, 10] */
    uint16_t *d_fc2 = (uint16_t *)(s->arena + 32768);        /* [N, 256] */
    uint16_t *d_fc1 = (uint16_t *)(s->arena + 0);            /* [N, 256] */
    float *loss_report = &s->fit.loss;
    const RtScratch scratch = s->scratch;

    RT_FOR(lo, hi, 64 * N, 32768, fit_x_bf16(lo, hi, x_bf16, x));
    rt_gemm(RT_BF16, RT_FUSED, N, 256, 64, rt_matrix(x_bf16, 64, 1),
            rt_matrix(net_fc1_weight, 1, 64), fit_fc1_relu,
            &(fit_fc1_relu_args){fc1_relu, net_fc1_bias}, scratch);
    rt_gemm(RT_BF16, RT_FUSED, N, 256, 256, rt_matrix(fc1_relu, 256, 1),
            rt_matrix(net_fc2_weight, 1, 256), fit_fc1_relu,
            &(fit_fc1_relu_args){fc2_relu, net_fc2_bias}, scratch);
    rt_gemm(RT_BF16, RT_FUSED, N, 10, 256, rt_matrix(fc2_relu, 256, 1),
            rt_matrix(net_fc3_weight, 1, 256), fit_fc3, &(fit_fc3_args){fc3, net_fc3_bias},
            scratch);
    RT_FOR(lo, hi, N, 64, fit_d_fc3(lo, hi, nll, d_fc3, y, fc3, N));
    fit_loss(loss_report, nll, N);
    RT_FOR(lo, hi, 10, 64, fit_d_fc3_bias(lo, hi, d_fc3_bias, d_fc3, N));
    rt_gemm(RT_BF16, RT_FUSED, 10, 256, N, rt_matrix(d_fc3, 1, 10), rt_matrix(fc2_relu, 256, 1),
            fit_d_fc3_weight, &(fit_d_fc3_weight_args){d_fc3_weight}, scratch);
    rt_gemm(RT_BF16, RT_FUSED, N, 256, 10, rt_matrix(d_fc3, 10, 1),
            rt_matrix(net_fc3_weight, 256, 1), fit_d_fc2, &(fit_d_fc2_args){d_fc2}, scratch);
    RT_FOR(lo, hi, 256, 64, fit_d_fc2_bias(lo, hi, d_fc2_bias, d_fc2, N));
    rt_gemm(RT_BF16, RT_FUSED, 256, 256, N, rt_matrix(d_fc2, 1, 256), rt_matrix(fc1_relu, 256, 1),
            fit_d_fc2_weight, &(fit_d_fc2_weight_args){d_fc2_weight}, scratch);
    rt_gemm(RT_BF16, RT_FUSED, N, 256, 256, rt_matrix(d_fc2, 256, 1),
            rt_matrix(net_fc2_weight, 256, 1), fit_d_fc2, &(fit_d_fc2_args){d_fc1}, scratch);
    RT_FOR(lo, hi, 256, 64, fit_d_fc2_bias(lo, hi, d_fc1_bias, d_fc1, N));
    rt_gemm(RT_BF16, RT_FUSED, 256, 64, N, rt_matrix(d_fc1, 1, 256), rt_matrix(x_bf16, 64, 1),
            fit_d_fc1_weight, &(fit_d_fc1_weight_args){d_fc1_weight}, scratch);
    const bool opt_taken = opt_update(s);
    rt_scaler_update(&s->scaler, !opt_taken);
    s->fit.step++;
    s->fit.skipped += !opt_taken;
}

// eval test(x: float[N, 64], y: i32[N]) on digits.test                               digits.amp:37
static void test_step(State *s, int64_t N, const float *x, const int32_t *y)
{
    const uint16_t *net_fc1_weight = s->opt.copy + NET_FC1_WEIGHT;
    const uint16_t *net_fc1_bias = s->opt.copy + NET_FC1_BIAS;
    const uint16_t *net_fc2_weight = s->opt.copy + NET_FC2_WEIGHT;
    const uint16_t *net_fc2_bias = s->opt.copy + NET_FC2_BIAS;
    const uint16_t *net_fc3_weight = s->opt.copy + NET_FC3_WEIGHT;
    const uint16_t *net_fc3_bias = s->opt.copy + NET_FC3_BIAS;
    uint16_t *x_bf16 = (uint16_t *)(s->arena + 32768);       /* [N, 64] */
    uint16_t *fc1_relu = (uint16_t *)(s->arena + 0);         /* [N, 256] */
    uint16_t *fc2_relu = (uint16_t *)(s->arena + 32768);     /* [N, 256] */
    float *fc3 = (float *)(s->arena + 0);                    /* [N, 10] */
    float *right = (float *)(s->arena + 2560);               /* [N] */
    float *accuracy_report = &s->test.accuracy;
    const RtScratch scratch = s->scratch;

    RT_FOR(lo, hi, 64 * N, 32768, fit_x_bf16(lo, hi, x_bf16, x));
    rt_gemm(RT_BF16, RT_FUSED, N, 256, 64, rt_matrix(x_bf16, 64, 1),
            rt_matrix(net_fc1_weight, 1, 64), fit_fc1_relu,
            &(fit_fc1_relu_args){fc1_relu, net_fc1_bias}, scratch);
    rt_gemm(RT_BF16, RT_FUSED, N, 256, 256, rt_matrix(fc1_relu, 256, 1),
            rt_matrix(net_fc2_weight, 1, 256), fit_fc1_relu,
            &(fit_fc1_relu_args){fc2_relu, net_fc2_bias}, scratch);
    rt_gemm(RT_BF16, RT_FUSED, N, 10, 256, rt_matrix(fc2_relu, 256, 1),
            rt_matrix(net_fc3_weight, 1, 256), fit_fc3, &(fit_fc3_args){fc3, net_fc3_bias},
            scratch);
    RT_FOR(lo, hi, N, 512, test_right(lo, hi, right, fc3, y));
    fit_loss(accuracy_report, right, N);
}

/* ---- Data ---- */

typedef struct Data {
    RtDataset digits;
    RtPart digits_part[2]; /* train, test */
} Data;

static double digits_x(const RtSource *from, int64_t row, int64_t i)
{
    return rt_source_value(from, row, i) / 16;
}

static double digits_y(const RtSource *from, int64_t row, int64_t i)
{
    (void)i;
    return rt_source_value(from, row, 64);
}

// dataset digits = csv(data)                                                          digits.amp:9
static int load_digits(Data *d, const char *path)
{
    static const double share[] = {0.8, 0.2};
    static const char *const part[] = {"train", "test"};
    RtSource from[1];
    int status = rt_csv_read(path, ',', 0, from);
    if (!status)
        status = rt_source_has_columns(from, path, 65);
    rt_dataset_start(&d->digits, "digits", from[0].rows);
    if (!status)
        status = rt_dataset_field(&d->digits, "x", RT_KIND_F32, 64, digits_x, from);
    if (!status)
        status = rt_dataset_field(&d->digits, "y", RT_KIND_I32, 1, digits_y, from);
    if (!status)
        status = rt_dataset_check_classes(&d->digits, 1, 10);
    if (!status)
        status = rt_dataset_split(&d->digits, 0, 2, share, part, d->digits_part);
    rt_source_free(from);
    return status;
}

static void data_free(Data *d)
{
    rt_part_free(&d->digits_part[0]);
    rt_part_free(&d->digits_part[1]);
    rt_dataset_free(&d->digits);
}

/* ---- Training ---- */

/* Written into checkpoints, and compared when they are read. */
static RtProgram this_program = {"0.1.0", "O2", "bf16", "apex", "609158f5683a18e6", 0};

/* The columns of the log. */
static const char *const columns[] = {"step", "entry", "epoch", "skipped", "ms_per_step", "lr.opt",
                                      "grad_norm.opt", "scale.scaler", "loss", "accuracy"};

/* Takes the weights of an instance from a file. */
static int load_weights(State *s, RtRun *run, const char *instance, const char *path)
{
    RtTable table = {NULL, 0, 0, 0};
    weight_table(s, &table, instance);
    int status = rt_table_status(&table);
    if (!status)
        status = rt_run_load_weights(run, path, table.entry, table.count);
    state_round(s);
    rt_table_free(&table);
    return status;
}

static int export_weights(State *s, const char *instance, const char *path)
{
    RtTable table = {NULL, 0, 0, 0};
    weight_table(s, &table, instance);
    int status = rt_table_status(&table);
    if (!status)
        status = rt_table_export(&table, path);
    rt_table_free(&table);
    return status;
}

/* Finds out where checkpoints go, and that they can be written. */
static int open_checkpoints(RtRun *run)
{
    return rt_run_checkpoints(run, "digits.ckpt", 2);
}

static int save_checkpoint(State *s, RtRun *run)
{
    RtTable table = {NULL, 0, 0, 0};
    state_table(s, &table);
    int status = rt_table_status(&table);
    if (!status)
        status = open_checkpoints(run);
    if (!status)
        status = rt_run_save(run, s->fit.step, table.entry, table.count);
    rt_table_free(&table);
    return status;
}

/* Goes on from a checkpoint, if there is one. */
static int resume(State *s, RtRun *run)
{
    RtTable table = {NULL, 0, 0, 0};
    state_table(s, &table);
    int status = rt_table_status(&table);
    if (!status)
        status = open_checkpoints(run);
    if (!status)
        status = rt_run_resume(run, table.entry, table.count);
    state_round(s);
    s->fit.skipped = s->fit.step - s->opt.step;
    rt_table_free(&table);
    return status;
}

// eval test(x: float[N, 64], y: i32[N]) on digits.test                               digits.amp:37
static int evaluate_test(State *s, const Data *d, RtRun *run)
{
    double accuracy = 0; /* the sum over rows */
    RtBatches batches;
    int status = rt_batches_open(&batches, &d->digits_part[1], 64, 0, 0);
    while (!status && batches.epoch == 0) {
        int64_t N;
        if ((status = rt_batches_next(&batches, &N)))
            break;
        test_step(s, N, (const float *)rt_batches_field(&batches, 0),
                  (const int32_t *)rt_batches_field(&batches, 1));
        accuracy += (double)N * (double)s->test.accuracy;
    }
    rt_batches_close(&batches);
    if (status)
        return status;
    s->test.accuracy = (float)(accuracy / (double)d->digits_part[1].rows);
    rt_run_row(run, "test");
    rt_log_real(&run->log, 9, (double)s->test.accuracy);
    return rt_log_row(&run->log);
}

static int log_fit(const State *s, RtRun *run)
{
    rt_run_row(run, "fit");
    rt_log_real(&run->log, RT_COLUMN_MS, run->ms);
    rt_log_real(&run->log, 5, s->opt.lr);
    rt_log_real(&run->log, 6, s->opt.grad_norm);
    rt_log_real(&run->log, 7, (double)run->scale[0]);
    rt_log_real(&run->log, 8, (double)s->fit.loss);
    return rt_log_row(&run->log);
}

// train fit(x: float[N, 64], y: i32[N]) on digits.train                              digits.amp:25
static int train_fit(State *s, const Data *d, RtRun *run)
{
    RtBatches batches;
    int status = rt_batches_open(&batches, &d->digits_part[0], 64, RT_SHUFFLE | RT_DROP_LAST,
                                 s->seed);
    if (!status)
        status = rt_batches_seek(&batches, s->fit.epoch, s->fit.row);
    s->fit.steps = batches.steps * s->option.rounds;
    rt_run_begins(run, "fit", "loss", s->option.rounds, s->fit.steps, s->fit.skipped);
    while (!status && s->fit.step < s->fit.steps && !rt_run_stopped(run)) {
        int64_t N;
        rt_run_step_begins(run, s->fit.epoch);
        run->scale[0] = s->scaler.scale;
        if ((status = rt_batches_next(&batches, &N)))
            break;
        fit_step(s, N, (const float *)rt_batches_field(&batches, 0),
                 (const int32_t *)rt_batches_field(&batches, 1));
        const bool epoch_ends = batches.epoch > s->fit.epoch;
        s->fit.epoch = batches.epoch;
        s->fit.row = batches.row;
        rt_run_step_ends(run, s->fit.step, s->fit.skipped, (double)s->fit.loss, 0);
        if (rt_run_logs(run))
            status = log_fit(s, run);
        if (!status)
            status = rt_run_check_skips(run);
        if (!status && epoch_ends && s->fit.step < s->fit.steps)
            status = evaluate_test(s, d, run);
        const bool due = epoch_ends && s->fit.epoch % 5 == 0;
        if (!status && (due || rt_signal_take_save()))
            status = save_checkpoint(s, run);
    }
    rt_batches_close(&batches);
    return status;
}

/* ---- Main ---- */

int main(int argc, char **argv)
{
    static State state;
    static Data data;
    static RtRun run;
    State *s = &state;
    s->option.lr = 0.002;
    s->option.rounds = 60;
    s->option.data = "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz";
    run.seed = 1;
    const RtOption option[] = {
        {"lr", RT_OPTION_REAL, &s->option.lr, "0..1", NULL, "0.002", "peak learning rate", 0},
        {"rounds", RT_OPTION_INT, &s->option.rounds, "1..100000", NULL, "60", "epochs to train", 0},
        {"data", RT_OPTION_STRING, &s->option.data, NULL, NULL,
         "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz", "file of the digits",
         0},
    };
    int status = rt_run_open(&run, &this_program, "digits", NULL, option, 3, argc, argv);
    if (status || run.done)
        return rt_run_close(&run, status);

    s->seed = this_program.seed = (uint64_t)run.seed;
    s->threads = rt_run_threads(&run);
    if (!status)
        status = load_digits(&data, s->option.data);
    if (!status)
        status = state_create(s);
    if (!status && run.weights)
        status = load_weights(s, &run, "net", run.weights);
    if (!status && !run.eval)
        status = open_checkpoints(&run);
    if (!status && run.resume)
        status = resume(s, &run);
    if (!status)
        status = rt_run_open_log(&run, columns, 10);
    if (!status && !run.eval && !rt_run_stopped(&run))
        status = train_fit(s, &data, &run);
    if (!status && rt_signal_stop())
        status = save_checkpoint(s, &run);
    if (!status && !rt_run_stopped(&run))
        status = evaluate_test(s, &data, &run);
    rt_run_ends(&run);
    if (!status && !rt_run_stopped(&run)) {
        printf("test:  accuracy %.6g\n", (double)s->test.accuracy);
    }
    if (!status && run.dry_run)
        rt_run_tell_memory(&run, s->block.bytes);
    if (!status && run.export_path)
        status = export_weights(s, "net", run.export_path);
    state_destroy(s);
    data_free(&data);
    return rt_run_close(&run, status);
}

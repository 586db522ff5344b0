# Cases of the tests that compute on the default platform, by name. For ./dev and tools/gpu_kit.
programs='ops:*,programs*,jit*,pmap*,shard_map*,collectives*,random:*,scan:*,control flow:*,in place:*'
# What else does not ask for CPU devices by name.
values='linalg*,jax ops*,optim*,elementwise*,complex*,fft*,layers*,indexing*,ordering*,statistics*,attention*,nn*,windows*,rearranging*'
values+=',distributions*,tpmap*,checkpoints*,data*,conv*,pooling*,losses*,grad*,jacobian*,custom derivatives*,numbers*,composed*'
values+=',samples*,sets*,shapes*,partial sums*,unreduced*,tree*,pullbacks*,embedding*,halves*,files*,debug*,transfer*,placement*,semantics*'
values+=',laziness*,keys*,edges*,products*,reproducible*,modes*'
# Of those: what kills processes by the clock, or goes on in a copy of one. A GPU is slow to start, and cannot be copied.
killed='*killed while it saves*,*programs that save in one folder*,*ends a save*'
